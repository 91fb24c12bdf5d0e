// A linear's weights on the CPU: parts (the tensors it was made of) of groups of 8 rows, either
// interleaved in a buffer of ours or used where the file's map has them.
#pragma once

#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/linear_weights.h"

namespace tinyvllm::ops::cpu {

// The forms in which activations are multiplied (kernels.h).
enum class Form { kFloat, kQ8, kQ8Wide, kQ8K };
constexpr int kForms = 4;

struct LinearPart {
  DType dtype = DType::kF32;
  Form form = Form::kFloat;  // of the activations
  LinearKernel kernel = nullptr;
  int64_t row_begin = 0;  // in the linear's result
  int64_t rows = 0;
  const char* data = nullptr;
  int64_t group_bytes = 0;  // from one group of 8 rows to the next

  bool interleaved() const { return form != Form::kFloat; }
  int64_t groups() const { return (rows + kRowGroup - 1) / kRowGroup; }
};

struct LinearWeights final : Linear::Weights {
  std::vector<LinearPart> parts;
  int64_t groups = 0;         // of all parts
  bool halves_align = false;  // groups of the result's two halves begin at the same places
  Buffer packed;
  Buffer bias;  // [out] float, or empty

  // The part whose group begins at that row of the result, or null.
  const LinearPart* part_at(int64_t row) const;
};

// Bytes of an interleaved group of 8 rows of k columns; 0 for types that are used as they lie.
size_t interleaved_bytes(DType dtype, int64_t k);

// `rows` (1..8) rows of a tensor into one group; missing rows become zeros.
void interleave(DType dtype, const void* source, int rows, int64_t k, void* group);

}  // namespace tinyvllm::ops::cpu
