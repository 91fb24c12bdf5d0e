// The cases that each op is tested and measured at: odd and misaligned sizes first, then the shapes
// of real models. Tests run all of them on every instruction set; `bench ops` times the last ones.
#pragma once

#include <vector>

#include "base/dtype.h"

namespace tinyvllm::ops {

inline const std::vector<DType> kWeightTypes = {
    DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0, DType::kQ4_0,
    DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K, DType::kQ3_K,
    DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
};

struct RowsCase {
  int64_t rows;
  int64_t width;
};
inline const std::vector<RowsCase> kNormCases = {
    {0, 8}, {1, 1}, {3, 7}, {2, 33}, {5, 576}, {64, 2048}, {1, 16384},
};

inline const std::vector<RowsCase> kSoftmaxCases = {
    {0, 5}, {1, 1}, {3, 7}, {2, 100}, {2, 8192}, {1, 8193}, {2, 49152}, {1, 151936},
};

inline const std::vector<int> kTopK = {0, 1, 5, 64, 1000};

struct LinearCase {
  int64_t tokens;
  int64_t out;
  int64_t in;  // of block types: rounded up to a block
};
inline const std::vector<LinearCase> kLinearCases = {
    {0, 8, 32},  {1, 1, 1},     {1, 8, 32},     {2, 9, 33},    {3, 7, 64},
    {5, 24, 31}, {1, 576, 576}, {7, 100, 1536}, {65, 17, 256}, {1, 3, 8192},
};

struct MoeCase {
  int64_t tokens;
  int64_t experts;
  int used;
  int64_t hidden;
  int64_t ffn;
  bool normalize;
};
inline const std::vector<MoeCase> kMoeCases = {
    {1, 1, 1, 8, 8, true},     {3, 4, 4, 31, 5, true},  {9, 5, 2, 64, 33, false},
    {70, 16, 3, 32, 48, true}, {0, 4, 2, 32, 32, true},
};

// Shapes that models are made of, and batch sizes, to measure.
struct LinearShape {
  int64_t out;
  int64_t in;
};
inline const std::vector<LinearShape> kModelLinears = {
    {3072, 576},   {576, 1536},  {49152, 576},  // SmolLM2-135M: gate and up, down, head
    {9728, 896},   {896, 4864},                 // Qwen2.5-0.5B: gate and up, down
    {11264, 2048}, {2048, 5632},                // TinyLlama-1.1B: gate and up, down
};

struct AttentionShape {
  int heads;
  int kv_heads;
  int head_dim;
  int cached;
  int queries;
};
inline const std::vector<AttentionShape> kModelAttentions = {
    {9, 3, 64, 127, 1},   {9, 3, 64, 0, 128},  {9, 3, 64, 0, 512},  {32, 4, 64, 127, 1},
    {32, 4, 64, 4095, 1}, {32, 4, 64, 0, 128}, {32, 4, 64, 0, 512},
};

struct AttentionCase {
  std::vector<int> lengths;  // of the sequences
  int heads;
  int kv_heads;
  int head_dim;
  int block_size;
  int window = 0;
  float soft_cap = 0;
};
inline const std::vector<AttentionCase> kAttentionCases = {
    {{1}, 1, 1, 8, 16},
    {{5}, 3, 1, 7, 8},
    {{64, 66, 3}, 9, 3, 64, 16},
    {{130, 8}, 4, 4, 80, 32},
    {{70, 201}, 8, 2, 128, 16, 33},
    {{133}, 2, 1, 256, 16, 0, 50},
    {{110}, 6, 2, 64, 5},
    {{110}, 6, 2, 12, 1, 64, 30},
    {{70, 18}, 20, 1, 32, 16},
};

}  // namespace tinyvllm::ops
