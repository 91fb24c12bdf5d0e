#include "sample/random.h"

#include <random>

namespace tinyvllm {

uint64_t random_seed() {
  std::random_device entropy;
  return static_cast<uint64_t>(entropy()) << 32 | entropy();
}

}  // namespace tinyvllm
