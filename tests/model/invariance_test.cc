#include "tests/model/invariance.h"

namespace tinyvllm {
namespace {

TEST_P(InvarianceTest, LogitsAreTheSameBitsHoweverTheyAreComputed) {
  const auto one = make_runtime(1);
  const auto two = make_runtime(2);
  expect_same_on({one.get(), two.get()});
}

INSTANTIATE_TEST_SUITE_P(Models, InvarianceTest, InvarianceTest::values(), InvarianceTest::name_of);

}  // namespace
}  // namespace tinyvllm
