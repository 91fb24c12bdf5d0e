// Attention over a cache of F32.
#include "ops/cpu/isa/attention_tile.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {

void attend_f32(const AttentionTile& tile) { attend<CacheF32>(tile); }

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
