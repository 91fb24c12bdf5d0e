#include "ops/cpu/isa/functions.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {
namespace {

LinearKernel linear(DType weights) {
  if (const LinearKernel kernel = linear_rows(weights)) return kernel;
  if (const LinearKernel kernel = linear_interleaved_32(weights)) return kernel;
  return linear_interleaved_256(weights);
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels = {
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .quantize_q8 = quantize_q8,
    .quantize_q8_wide = quantize_q8_wide,
    .quantize_q8_k = quantize_q8_k,
    .linear = linear,
    .silu_gate = silu_gate,
    .gelu_gate = gelu_gate,
    .rotation = rotation,
    .rotate_adjacent = rotate_adjacent,
    .rotate_halves = rotate_halves,
    .to_f16 = to_f16,
    .to_i8 = to_i8,
    .attend_i8 = attend_i8,
    .attend_f16 = attend_f16,
    .attend_f32 = attend_f32,
    .merge_attention = merge_attention,
    .largest = largest,
    .exponentials = exponentials,
    .find_above = find_above,
    .read_forward = read_forward,
    .read_prefetched = read_prefetched,
    .multiply_add = multiply_add,
    .multiply_bytes = multiply_bytes,
};

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
