// What the files of this folder define for the table (table.cc), each in its own instruction set's
// namespace.
#pragma once

#include "ops/cpu/kernels.h"

namespace tinyvllm::ops::cpu::TINYVLLM_ISA {

void rms_norm(const float* x, const float* w, float eps, int64_t n, float* y);
void layer_norm(const float* x, const float* w, const float* b, float eps, int64_t n, float* y);

void quantize_q8(const float* x, int64_t n, void* to);
void quantize_q8_wide(const float* x, int64_t n, void* to);
void quantize_q8_k(const float* x, int64_t n, void* to);
LinearKernel linear_interleaved_32(DType weights);
LinearKernel linear_interleaved_256(DType weights);
LinearKernel linear_rows(DType weights);
void silu_gate(const float* g, const float* u, int64_t n, float* y);
void gelu_gate(const float* g, const float* u, int64_t n, float* y);

void rotation(const float* frequencies, int64_t pairs, float position, float magnitude,
              float* cosines, float* sines);
void rotate_adjacent(const float* cosines, const float* sines, int64_t pairs, float* head);
void rotate_halves(const float* cosines, const float* sines, int64_t pairs, float* head);
void to_f16(const float* x, int64_t n, uint16_t* y);
float to_i8(const float* x, int64_t n, int8_t* y);

void attend_i8(const AttentionTile& tile);
void attend_f16(const AttentionTile& tile);
void attend_f32(const AttentionTile& tile);
void merge_attention(const AttentionState& from, int row, int v_dim, const AttentionState& to,
                     int to_row);

float largest(const float* x, int64_t n);
float exponentials(const float* x, int64_t n, float shift, float* y);
int64_t find_above(const float* x, int64_t n, float threshold);

int64_t read_forward(const void* data, int64_t bytes);
int64_t read_prefetched(const void* data, int64_t bytes);
float multiply_add(int64_t rounds, float seed);
int64_t multiply_bytes(int64_t rounds, int8_t seed);

}  // namespace tinyvllm::ops::cpu::TINYVLLM_ISA
