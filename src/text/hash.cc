#include "text/hash.h"

#include <random>

namespace tinyvllm {

const uint64_t kHashSeed = [] {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}();

}  // namespace tinyvllm
