#include "model/convert/gguf_model.h"

#include "model/convert/hf_metadata.h"
#include "model/convert/hf_vocabulary.h"
#include "ops/reference/dequantize.h"

namespace tinyvllm {
namespace {

GgufModel from_gguf(const ModelFiles& files) {
  GgufModel model;
  for (const GgufPair& pair : files.gguf_pairs()) {
    // Parts are joined, and the writer has its own alignment.
    if (!pair.key.starts_with("split.") && pair.key != "general.alignment") model.pairs.copy(pair);
  }
  for (const WeightTensor& tensor : files.weights().tensors()) {
    GgufSource source;
    source.name = tensor.name;
    source.dtype = source.own_type = tensor.view.dtype;
    source.shape = tensor.view.shape;
    source.parts = {tensor.view};
    model.tensors.push_back(std::move(source));
  }
  return model;
}

// GGUF's llama has the rows of each head of Q and K reordered, so that what rotates together lies
// together: 0, n/2, 1, n/2 + 1, …
std::vector<int64_t> neighbour_order(int64_t rows, int64_t head_dim) {
  std::vector<int64_t> order;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t head = r / head_dim, j = r % head_dim;
    order.push_back(head * head_dim + j % 2 * (head_dim / 2) + j / 2);
  }
  return order;
}

bool rotates(const std::string& name) {
  return name.find(".attn_q.") != std::string::npos || name.find(".attn_k.") != std::string::npos;
}

// Numbers that lie in no file as they are needed.
TensorView keep(GgufModel& model, std::vector<float> values) {
  const auto size = static_cast<int64_t>(values.size());
  model.made.push_back(std::move(values));
  return {model.made.back().data(), DType::kF32, {size}};
}

Result<GgufSource> hf_source(const ModelFiles& files, const ModelListing::Weight& weight) {
  GgufSource source;
  source.name = weight.name;
  source.shape = weight.shape;
  source.offset = weight.offset;
  for (const std::string& name : weight.sources) {
    const TensorView& view = files.weights().find(name)->view;
    if (source.parts.empty()) source.dtype = view.dtype;
    if (view.dtype != source.dtype) {
      return error("tensor '", printable(name), "' is ", dtype_name(view.dtype), "; expected ",
                   dtype_name(source.dtype), " like the other experts");
    }
    source.parts.push_back(view);
  }
  if (!ops::reference::can_dequantize(source.dtype)) {
    return error("tensor '", printable(weight.sources.front()), "' is ", dtype_name(source.dtype),
                 ", which cannot be read as numbers");
  }
  return source;
}

void reorder(GgufModel& model, GgufSource& source, int64_t head_dim) {
  if (source.shape.rank == 2) {
    source.row_order = neighbour_order(source.shape[0], head_dim);
    return;
  }
  const int64_t n = source.shape[0];  // a bias
  std::vector<float> values(static_cast<size_t>(n)), ordered;
  ops::reference::dequantize(source.dtype, source.parts[0].data, n, values.data());
  for (const int64_t i : neighbour_order(n, head_dim)) {
    ordered.push_back(values[static_cast<size_t>(i)]);
  }
  source.parts = {keep(model, std::move(ordered))};
  source.dtype = DType::kF32;
}

Result<GgufModel> from_hf(const ModelFiles& files, Device& device, ThreadPool& pool) {
  if (files.weights().tensors().empty()) {
    return error(printable(files.path(), 4096), ": there are no weights to convert");
  }
  TRY_ASSIGN(HfDescription description, describe_hf(files, device, pool));
  TRY(add_hf_vocabulary(files.tokenizer(), description.config.vocab_size, description.pairs));
  GgufModel model;
  model.pairs = std::move(description.pairs);
  const bool reordered = std::string_view(description.architecture->gguf_name) == "llama";
  for (const ModelListing::Weight& weight : description.listing.weights) {
    TRY_ASSIGN(GgufSource source, hf_source(files, weight));
    if (reordered && rotates(source.name)) reorder(model, source, description.config.head_dim);
    model.tensors.push_back(std::move(source));
  }
  for (FactorTable& table : description.tables) {
    GgufSource source;
    source.name = table.name;
    source.parts = {keep(model, std::move(table.values))};
    source.shape = source.parts[0].shape;
    model.tensors.push_back(std::move(source));
  }
  return model;
}

}  // namespace

const void* GgufSource::row(int64_t r) const {
  const int64_t rows_per_part = shape.rows() / static_cast<int64_t>(parts.size());
  const TensorView& part = parts[static_cast<size_t>(r / rows_per_part)];
  const int64_t within = r % rows_per_part;
  const int64_t source = row_order.empty() ? within : row_order[static_cast<size_t>(within)];
  return static_cast<const char*>(part.data) +
         static_cast<size_t>(source) * row_bytes(dtype, shape.row_elements());
}

Result<GgufModel> gguf_model_of(const ModelFiles& files, Device& device, ThreadPool& pool) {
  if (files.format() == ModelFormat::kGguf) return from_gguf(files);
  return from_hf(files, device, pool);
}

}  // namespace tinyvllm
