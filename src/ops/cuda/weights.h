// Weights on the card, and how they get there: the file's bytes go up as they are and are packed by
// the card itself.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "ops/cuda/packed.h"
#include "ops/linear_weights.h"

namespace tinyvllm::ops::cuda {

struct Matrix {
  Packed packed;
  std::shared_ptr<const Buffer> memory;  // of a head that is the embedding: the same
};
Result<Matrix> upload_matrix(Device& device, const TensorView& view);
Result<Matrix> upload_matrix(Device& device, std::span<const TensorView> views);

struct CudaLinear final : Linear::Weights {
  std::vector<Matrix> parts;  // their results lie side by side
  Buffer bias;                // [out] floats, or empty

  const float* bias_data() const { return static_cast<const float*>(bias.data()); }
};

// Gate and up as two matrices of one form, where the parts allow it.
struct GateUp {
  Packed gate;
  Packed up;
};
std::optional<GateUp> gate_and_up(const CudaLinear& w);

inline const CudaLinear& weights_of(const Linear& w) {
  return static_cast<const CudaLinear&>(w.weights());
}

}  // namespace tinyvllm::ops::cuda
