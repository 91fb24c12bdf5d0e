// Finds where a step's numbers stopped being numbers: while a watch is set, every op shows it what
// it computed, and it keeps the first result with a NaN or an infinity. For a step that is run
// again because its logits were none; otherwise no op looks.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/strings.h"
#include "base/tensor.h"

namespace tinyvllm {

class FaultWatch {
 public:
  // The step's tokens that are worth looking at.
  explicit FaultWatch(std::vector<bool> tokens) : tokens_(std::move(tokens)) {}

  void look(const char* op, int layer, const Tensor& result) {
    if (found() || result.dtype != DType::kF32) return;
    const bool by_token = result.rows == static_cast<int64_t>(tokens_.size());
    for (int64_t row = 0; row < result.rows; ++row) {
      if (by_token && !tokens_[static_cast<size_t>(row)]) continue;
      const float* x = result.f32() + row * result.stride;
      for (int64_t i = 0; i < result.cols; ++i) {
        if (std::isfinite(x[i])) continue;
        where_ =
            layer < 0 ? str_cat("outside the layers, ", op) : str_cat("layer ", layer, ", ", op);
        return;
      }
    }
  }
  bool found() const { return !where_.empty(); }
  const std::string& where() const { return where_; }  // "layer 3, attention"

 private:
  const std::vector<bool> tokens_;
  std::string where_;
};

}  // namespace tinyvllm
