#include "model/binder.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "base/stopwatch.h"
#include "ops/finite.h"

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

std::string fill(std::string pattern, const std::string& value) {
  if (const size_t at = pattern.find("{}"); at != std::string::npos) pattern.replace(at, 2, value);
  return pattern;
}

Error not_finite(std::string_view tensor, int64_t row) {
  return error("tensor '", printable(tensor), "' holds NaN or infinity in row ", row);
}

// Tables that old files carry and everybody computes.
bool is_derived(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn_rot_embd.weight");
}

}  // namespace

std::string WeightBinder::source_name(const std::string& name) const {
  if (files_.format() == ModelFormat::kGguf) return name;
  const auto [pattern, layer] = split_layer(name);
  for (const NameRow& row : names_) {
    if (pattern == row.gguf) return fill(row.hf, layer);
  }
  check_failed(__FILE__, __LINE__, "every name is in the architecture's table", name);
}

bool WeightBinder::has(const std::string& name, const char* suffix) const {
  return files_.weights().find(source_name(name) + suffix) != nullptr;
}

Result<WeightBinder::Source> WeightBinder::take(const std::string& source, const Shape& shape) {
  const bool seen = !used_.insert(source).second;
  if (listing_ != nullptr && files_.weights().tensors().empty()) return Source{source, {}};
  TRY_ASSIGN(const TensorView view, files_.weights().get(source, shape));
  if (listing_ != nullptr || seen) return Source{source, view, seen};
  report(source, device_.unsent_bytes());
  const int64_t begin = now_ns();
  const auto bad_row = ops::find_not_finite(device_, pool_, view);
  if (stats_ != nullptr) {
    stats_->check_ns += now_ns() - begin;
    stats_->bytes += view.bytes();
  }
  if (bad_row) return not_finite(source, *bad_row);
  loaded_bytes_ += static_cast<int64_t>(view.bytes());
  return Source{source, view};
}

// What was taken and not yet given to the device counts as sent: a few tensors, which must not be
// taken back when they are.
void WeightBinder::report(std::string_view tensor, size_t unsent) {
  if (!progress_) return;
  sent_bytes_ = std::max(sent_bytes_, loaded_bytes_ - static_cast<int64_t>(unsent));
  progress_(tensor, sent_bytes_, static_cast<int64_t>(files_.file_bytes()));
}

void WeightBinder::list(ModelListing::Weight weight) {
  if (listing_ == nullptr) return;
  for (const ModelListing::Weight& before : listing_->weights) {
    if (before.name == weight.name) return;  // a head that is the embedding
  }
  listing_->weights.push_back(std::move(weight));
}

Result<WeightBinder::Source> WeightBinder::take_named(const std::string& name, Kind kind,
                                                      const Shape& shape, float offset) {
  const char* suffix = kind == Kind::kBias ? ".bias" : ".weight";
  const std::string source = source_name(name) + suffix;
  list({name + suffix, {source}, shape, kind, offset});
  return take(source, shape);
}

Result<ops::Linear> WeightBinder::pack(std::span<const Source> weights,
                                       std::span<const Source> biases) {
  if (listing_ != nullptr) return ops::Linear();
  std::vector<TensorView> weight_views;
  std::vector<TensorView> bias_views;
  std::string names;
  bool drop = true;
  std::shared_ptr<void> on_device;
  for (const Source& weight : weights) {
    weight_views.push_back(weight.view);
    drop = drop && !(weight.shared && files_.in_memory());
    if (weight.shared) on_device = embedding_on_device_;
    names += str_cat(names.empty() ? "'" : ", '", printable(weight.name), "'");
  }
  for (const Source& bias : biases) bias_views.push_back(bias.view);
  const int64_t begin = now_ns();
  auto linear = ops::make_linear(device_, pool_, {weight_views, bias_views, drop, on_device});
  if (stats_ != nullptr) {
    stats_->pack_ns += now_ns() - begin;
    for (const TensorView& view : weight_views) {
      (is_quantized(view.dtype) ? stats_->packed : stats_->mapped) += 1;
    }
  }
  if (!linear.ok()) return error("tensor ", names, ": ", linear.message());
  if (on_device == nullptr) count_held(weights, linear.value().bytes(), drop);
  return linear;
}

// A head that is the embedding is there once where rows are multiplied as they lie. Where they are
// packed, the table is there beside it: all of it, or of a file only rows that are looked up.
void WeightBinder::count_held(std::span<const Source> weights, size_t bytes, bool dropped) {
  if (stats_ == nullptr) return;
  stats_->held_bytes += bytes;
  for (const Source& weight : weights) {
    if (!weight.shared) continue;
    const bool packed = is_quantized(weight.view.dtype);
    if (packed && !dropped) continue;
    stats_->held_bytes -= weight.view.bytes();
    if (packed) stats_->by_row = weight.view;
  }
}

Result<ops::Linear> WeightBinder::linear(std::initializer_list<Part> parts, int64_t in, bool bias) {
  std::vector<Source> weights;
  std::vector<Source> biases;
  for (const Part& part : parts) {
    TRY_ASSIGN(weights.emplace_back(), take_named(part.name, Kind::kMatrix, {part.out, in}));
    if (bias) {
      TRY_ASSIGN(biases.emplace_back(), take_named(part.name, Kind::kBias, {part.out}));
    }
  }
  TRY_ASSIGN(ops::Linear linear, pack(weights, biases));
  if (listing_ == nullptr) bytes_per_token_ += linear.bytes();
  return linear;
}

Result<std::vector<WeightBinder::Source>> WeightBinder::take_experts(const std::string& name,
                                                                     int64_t count, int64_t out,
                                                                     int64_t in) {
  std::vector<Source> experts;
  if (files_.format() == ModelFormat::kHuggingFace) {
    ModelListing::Weight listed{name + ".weight", {}, {count, out, in}};
    for (int64_t i = 0; i < count; ++i) {
      const std::string own = fill(source_name(name), std::to_string(i)) + ".weight";
      TRY_ASSIGN(experts.emplace_back(), take(own, {out, in}));
      listed.sources.push_back(own);
    }
    list(std::move(listed));
    return experts;
  }
  TRY_ASSIGN(const Source all, take_named(name, Kind::kMatrix, {count, out, in}));
  const size_t bytes = row_bytes(all.view.dtype, in) * static_cast<size_t>(out);
  for (int64_t i = 0; i < count; ++i) {
    const char* data = static_cast<const char*>(all.view.data) + static_cast<size_t>(i) * bytes;
    experts.push_back({all.name, TensorView{data, all.view.dtype, {out, in}}});
  }
  return experts;
}

Result<ops::Experts> WeightBinder::experts(const ExpertNames& names, int64_t count, int64_t used,
                                           int64_t hidden, int64_t ffn) {
  TRY_ASSIGN(const std::vector<Source> gate, take_experts(names.gate, count, ffn, hidden));
  TRY_ASSIGN(const std::vector<Source> up, take_experts(names.up, count, ffn, hidden));
  TRY_ASSIGN(const std::vector<Source> down, take_experts(names.down, count, hidden, ffn));
  ops::Experts experts;
  if (listing_ != nullptr) return experts;
  for (size_t i = 0; i < gate.size(); ++i) {
    const Source both[] = {gate[i], up[i]};
    TRY_ASSIGN(experts.gate_up.emplace_back(), pack(both, {}));
    TRY_ASSIGN(experts.down.emplace_back(), pack({&down[i], 1}, {}));
  }
  TRY(ops::prepare_experts(device_, experts));
  // A token reads its own experts; which ones, only the router knows, but all are of one size.
  for (int64_t i = 0; i < used; ++i) {
    bytes_per_token_ += experts.gate_up.front().bytes() + experts.down.front().bytes();
  }
  return experts;
}

Result<ops::Norm> WeightBinder::norm(const std::string& name, ops::NormKind kind, float eps,
                                     int64_t width, float offset) {
  TRY_ASSIGN(const Source weight, take_named(name, Kind::kNorm, {width}, offset));
  Source bias;
  if (kind == ops::NormKind::kLayer) {
    TRY_ASSIGN(bias, take_named(name, Kind::kBias, {width}));
  }
  if (listing_ != nullptr) return ops::Norm();
  auto norm = ops::make_norm(device_, kind, eps, weight.view,
                             bias.view.data != nullptr ? &bias.view : nullptr, offset);
  if (!norm.ok()) return error("tensor '", printable(weight.name), "': ", norm.message());
  bytes_per_token_ += static_cast<size_t>(width) * sizeof(float);
  if (stats_ != nullptr) stats_->held_bytes += static_cast<size_t>(width) * sizeof(float);
  return norm;
}

Result<ops::Embedding> WeightBinder::embedding(const std::string& name, int64_t rows,
                                               int64_t width) {
  TRY_ASSIGN(const Source table, take_named(name, Kind::kMatrix, {rows, width}));
  if (listing_ != nullptr) return ops::Embedding();
  auto embedding = ops::make_embedding(device_, table.view);
  if (!embedding.ok()) return error("tensor '", printable(table.name), "': ", embedding.message());
  embedding_on_device_ = embedding.value().on_device;
  bytes_per_token_ += row_bytes(table.view.dtype, width);
  if (stats_ != nullptr) stats_->held_bytes += table.view.bytes();
  return embedding;
}

Result<std::vector<float>> WeightBinder::factors(const std::string& name, int64_t count) {
  TRY_ASSIGN(const Source source, take_named(name, Kind::kTable, {count}));
  if (source.view.dtype != DType::kF32) {
    return error("tensor '", printable(source.name), "': expected F32, found ",
                 dtype_name(source.view.dtype));
  }
  std::vector<float> values(static_cast<size_t>(count));
  std::memcpy(values.data(), source.view.data, source.view.bytes());
  for (const float value : values) {
    if (std::isfinite(value) && value > 0) continue;
    return error("tensor '", printable(source.name), "': expected positive factors, found ", value);
  }
  return values;
}

// Rows that the device found to be no numbers are known by where the file's map has them.
Status WeightBinder::check_on_device() {
  if (listing_ != nullptr) return Status();
  device_.wait_for_weights([&](size_t unsent) { report("", unsent); });
  report("", 0);
  TRY_ASSIGN(const void* const bad, ops::first_not_finite(device_));
  if (bad == nullptr) return Status();
  for (const WeightTensor& tensor : files_.weights().tensors()) {
    const TensorView& view = tensor.view;
    const auto* begin = static_cast<const char*>(view.data);
    if (bad < begin || bad >= begin + view.bytes()) continue;
    const auto row = static_cast<size_t>(static_cast<const char*>(bad) - begin) /
                     row_bytes(view.dtype, view.shape.row_elements());
    return not_finite(tensor.name, static_cast<int64_t>(row));
  }
  return Status();  // of a model that was given up before it was looked at
}

Status WeightBinder::finish() {
  TRY(check_on_device());
  for (const WeightTensor& tensor : files_.weights().tensors()) {
    if (used_.count(tensor.name) == 0 && !is_derived(tensor.name)) {
      return error("tensor '", printable(tensor.name), "' ", to_string(tensor.view.shape),
                   " is not part of this architecture");
    }
  }
  return Status();
}

}  // namespace tinyvllm
