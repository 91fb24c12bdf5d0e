// Attention over a cache of F16.
#include "ops/cpu/isa/attention_tile.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {

void attend_f16(const AttentionTile& tile) { attend<CacheF16>(tile); }

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
