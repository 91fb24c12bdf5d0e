#include "model/binder.h"

#include <cctype>

namespace tinyvllm {
namespace {

// Splits "blk.12.attn_q" into the pattern "blk.{}.attn_q" and "12"; no number gives an empty one.
std::pair<std::string, std::string> split_layer(const std::string& name) {
  constexpr std::string_view kPrefix = "blk.";
  if (name.rfind(kPrefix, 0) != 0) return {name, ""};
  size_t end = kPrefix.size();
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) end += 1;
  return {std::string(kPrefix) + "{}" + name.substr(end),
          name.substr(kPrefix.size(), end - kPrefix.size())};
}

}  // namespace

std::string WeightBinder::source_name(const std::string& name) const {
  if (files_.format() == ModelFormat::kGguf) return name;
  const auto [pattern, layer] = split_layer(name);
  for (const NameRow& row : names_) {
    if (pattern != row.gguf) continue;
    std::string translated = row.hf;
    if (const size_t at = translated.find("{}"); at != std::string::npos) {
      translated.replace(at, 2, layer);
    }
    return translated;
  }
  check_failed(__FILE__, __LINE__, "every name is in the architecture's table", name);
}

bool WeightBinder::has(const std::string& name) const {
  return files_.weights().find(source_name(name) + ".weight") != nullptr;
}

Result<TensorView> WeightBinder::take(const std::string& name, const char* suffix,
                                      const Shape& shape) {
  const std::string source = source_name(name) + suffix;
  used_.insert(source);
  return files_.weights().get(source, shape);
}

Result<ops::Linear> WeightBinder::linear(std::initializer_list<Part> parts, int64_t in, bool bias) {
  std::vector<TensorView> weights;
  std::vector<TensorView> biases;
  for (const Part& part : parts) {
    TRY_ASSIGN(const TensorView weight, take(part.name, ".weight", {part.out, in}));
    weights.push_back(weight);
    if (bias) {
      TRY_ASSIGN(const TensorView vector, take(part.name, ".bias", {part.out}));
      biases.push_back(vector);
    }
  }
  auto linear = ops::make_linear(device_, pool_, {weights, biases});
  if (!linear.ok())
    return error("tensor '", source_name(parts.begin()->name), "': ", linear.message());
  bytes_per_token_ += linear.value().bytes();
  return linear;
}

Result<ops::Norm> WeightBinder::norm(const std::string& name, ops::NormKind kind, float eps,
                                     int64_t width) {
  TRY_ASSIGN(const TensorView weight, take(name, ".weight", {width}));
  TensorView bias;
  if (kind == ops::NormKind::kLayer) {
    TRY_ASSIGN(bias, take(name, ".bias", {width}));
  }
  auto norm = ops::make_norm(device_, kind, eps, weight, bias.data != nullptr ? &bias : nullptr);
  if (!norm.ok()) return error("tensor '", source_name(name), "': ", norm.message());
  bytes_per_token_ += static_cast<size_t>(width) * sizeof(float);
  return norm;
}

Result<ops::Embedding> WeightBinder::embedding(const std::string& name, int64_t rows,
                                               int64_t width) {
  TRY_ASSIGN(const TensorView table, take(name, ".weight", {rows, width}));
  auto embedding = ops::make_embedding(device_, table);
  if (!embedding.ok()) return error("tensor '", source_name(name), "': ", embedding.message());
  bytes_per_token_ += row_bytes(table.dtype, width);
  return embedding;
}

Status WeightBinder::finish() const {
  for (const WeightTensor& tensor : files_.weights().tensors()) {
    if (used_.count(tensor.name) == 0) {
      return error("tensor '", printable(tensor.name), "' ", to_string(tensor.view.shape),
                   " is not part of this architecture");
    }
  }
  return Status();
}

}  // namespace tinyvllm
