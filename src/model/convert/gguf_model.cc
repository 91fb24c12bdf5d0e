#include "model/convert/gguf_model.h"

namespace tinyvllm {

const void* GgufSource::row(int64_t r) const {
  const int64_t rows_per_part = shape.rows() / static_cast<int64_t>(parts.size());
  const TensorView& part = parts[static_cast<size_t>(r / rows_per_part)];
  const int64_t within = r % rows_per_part;
  const int64_t source = row_order.empty() ? within : row_order[static_cast<size_t>(within)];
  return static_cast<const char*>(part.data) +
         static_cast<size_t>(source) * row_bytes(dtype, shape.row_elements());
}

Result<GgufModel> gguf_model_of(const ModelFiles& files) {
  if (files.format() != ModelFormat::kGguf) {
    return error(printable(files.path(), 4096), ": only GGUF files can be converted");
  }
  GgufModel model;
  for (const GgufPair& pair : files.gguf_pairs()) {
    // Parts are joined, and the writer has its own alignment.
    if (!pair.key.starts_with("split.") && pair.key != "general.alignment") model.pairs.copy(pair);
  }
  for (const WeightTensor& tensor : files.weights().tensors()) {
    model.tensors.push_back({tensor.name, tensor.view.dtype, tensor.view.shape, {tensor.view}, {}});
  }
  return model;
}

}  // namespace tinyvllm
