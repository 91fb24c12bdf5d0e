// The promise: a request's logits are the same bits, and so its tokens the same, whatever runs
// beside it, however its prompt is cut or cached, whatever the block size, the number of threads
// and of steps in flight, also after a preemption, at any temperature, given the seed. For a tiny
// model of every architecture and for the real one.
#include "tests/engine/determinism.h"

namespace tinyvllm {
namespace {

TEST_P(Determinism, ChunksBlocksThreadsStepsInFlightAndCompany) {
  expect_same_in_every_setting({1, 2});
}

TEST_P(Determinism, APrefixHitOfEveryLength) { expect_same_after_prefix_hits(); }

TEST_P(Determinism, AfterAPreemption) { expect_same_after_preemptions(); }

// All settings with all: `make test-long` asks for this one.
TEST_P(Determinism, DISABLED_EverythingAtOnce) { expect_same_in_all_settings_at_once({1, 2}); }

INSTANTIATE_TEST_SUITE_P(Models, Determinism, testing::ValuesIn(kGoldenModels),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(RealModels, Determinism, testing::Values("smollm2"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tinyvllm
