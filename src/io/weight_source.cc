#include "io/weight_source.h"

namespace tinyvllm {

const WeightTensor* WeightSource::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

Result<TensorView> WeightSource::get(std::string_view name, const Shape& shape) const {
  const WeightTensor* tensor = find(name);
  if (tensor == nullptr) {
    return error("tensor '", printable(name), "' is missing; expected one of shape ",
                 to_string(shape));
  }
  if (!(tensor->view.shape == shape)) {
    return error("tensor '", printable(name), "' has shape ", to_string(tensor->view.shape),
                 "; expected ", to_string(shape));
  }
  return tensor->view;
}

bool WeightSource::insert(WeightTensor tensor) {
  if (!index_.emplace(tensor.name, tensors_.size()).second) return false;
  tensors_.push_back(std::move(tensor));
  return true;
}

}  // namespace tinyvllm
