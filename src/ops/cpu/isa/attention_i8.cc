// Attention over a cache of int8 with a scale per token and head.
#include "ops/cpu/isa/attention_tile.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {

void attend_i8(const AttentionTile& tile) { attend<CacheI8>(tile); }

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
