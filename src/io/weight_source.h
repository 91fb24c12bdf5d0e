// Where weights come from, whatever the format: a list of named tensors, their bytes mapped and
// bounds-checked. Everything above io sees files through this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"

namespace tinyvllm {

struct WeightTensor {
  std::string name;
  TensorView view;           // shape outermost first: [out, in]
  uint64_t file_offset = 0;  // of its first byte, in the file (or shard) that holds it
  int file = 0;              // index of that file
};

class WeightSource {
 public:
  const std::vector<WeightTensor>& tensors() const { return tensors_; }

  const WeightTensor* find(std::string_view name) const;

  // The tensor of that name and shape, or an error that names the tensor and what does not match.
  Result<TensorView> get(std::string_view name, const Shape& shape) const;

  // False when a tensor of that name was there before.
  bool insert(WeightTensor tensor);

 private:
  std::vector<WeightTensor> tensors_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace tinyvllm
