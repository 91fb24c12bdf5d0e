#include "model/convert/file_type.h"

#include <algorithm>
#include <cstdio>
#include <strings.h>

namespace tinyvllm {
namespace {

constexpr FileType kFileTypes[] = {
    {"F32", 0, DType::kF32},
    {"F16", 1, DType::kF16},
    {"BF16", 32, DType::kBF16},
    {"Q8_0", 7, DType::kQ8_0},
    {"Q4_0", 2, DType::kQ4_0},
    {"Q4_1", 3, DType::kQ4_1},
    {"Q5_0", 8, DType::kQ5_0},
    {"Q5_1", 9, DType::kQ5_1},
    {"Q2_K", 10, DType::kQ2_K},
    {"Q3_K_S", 11, DType::kQ3_K, Mix::kSmall},
    {"Q3_K_M", 12, DType::kQ3_K, Mix::kMedium},
    {"Q3_K_L", 13, DType::kQ3_K, Mix::kLarge},
    {"Q4_K_S", 14, DType::kQ4_K, Mix::kSmall},
    {"Q4_K_M", 15, DType::kQ4_K, Mix::kMedium},
    {"Q5_K_S", 16, DType::kQ5_K, Mix::kSmall},
    {"Q5_K_M", 17, DType::kQ5_K, Mix::kMedium},
    {"Q6_K", 18, DType::kQ6_K},
};
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}};

// Small or delicate matrices that no file type touches.
constexpr std::string_view kKept[] = {"_norm.weight",     "ffn_gate_inp.weight",  "altup",
                                      "laurel",           "per_layer_model_proj", "ssm_conv1d",
                                      "shortconv.conv",   "attn_rel_b",           "position_embd",
                                      "token_types",      "time_mix_first",       "time_mix_w",
                                      "time_mix_v0",      "time_mix_v1",          "time_mix_v2",
                                      "time_mix_a",       "time_mix_g1",          "time_mix_g2",
                                      "time_mix_decay_w", "time_mix_lerp_fused"};

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

bool is_matrix(const Shape& shape) {
  return std::count_if(shape.dims.begin(), shape.dims.begin() + shape.rank - 1,
                       [](int64_t size) { return size > 1; }) > 0;
}

bool takes_type(const GgufTensor& tensor) {
  if (tensor.shape.rank < 2 || !is_matrix(tensor.shape)) return false;
  if (!tensor.name.ends_with("weight")) return false;
  return std::none_of(std::begin(kKept), std::end(kKept),
                      [&](std::string_view part) { return contains(tensor.name, part); });
}

enum class Role { kEmbedding, kOutput, kValue, kKey, kAttentionOutput, kFfnDown, kOther };

Role role_of(std::string_view name) {
  if (name == "output.weight") return Role::kOutput;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") return Role::kEmbedding;
  // Values matter most, so whatever holds them counts as them.
  for (const char* value : {"attn_qkv.weight", "attn_kv_b.weight", "attn_v.weight"}) {
    if (contains(name, value)) return Role::kValue;
  }
  if (contains(name, "attn_k.weight")) return Role::kKey;
  if (contains(name, "attn_output.weight")) return Role::kAttentionOutput;
  if (contains(name, "ffn_down")) return Role::kFfnDown;
  return Role::kOther;
}

int64_t layer_of(const std::string& name) {
  int layer = -1;
  return std::sscanf(name.c_str(), "blk.%d.", &layer) == 1 ? layer : -1;
}

// What the mixes want to know of a model, all of it visible in names and shapes.
struct Facts {
  int64_t layers = 0;
  int64_t values = 0;  // tensors in the role of values
  int64_t experts = 0;
  int64_t heads_per_kv = 1;
  bool tied = true;  // no output matrix: the embedding is it
};

Facts facts_of(const std::vector<GgufTensor>& tensors) {
  Facts facts;
  int64_t q_rows = 0, v_rows = 0;
  for (const GgufTensor& tensor : tensors) {
    const Role role = role_of(tensor.name);
    facts.layers = std::max(facts.layers, layer_of(tensor.name) + 1);
    facts.values += role == Role::kValue;
    if (role == Role::kOutput) facts.tied = false;
    if (contains(tensor.name, "_exps") && tensor.shape.rank == 3) facts.experts = tensor.shape[0];
    if (contains(tensor.name, "attn_q.weight")) q_rows = tensor.shape[0];
    if (contains(tensor.name, "attn_v.weight")) v_rows = tensor.shape[0];
  }
  if (q_rows > 0 && v_rows > 0) facts.heads_per_kv = q_rows / v_rows;
  return facts;
}

// The first and last eighth of the layers, and every third between.
bool more_bits(int64_t i, int64_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

// `i`: how many tensors of the role came before.
DType value_type(const FileType& t, const Facts& facts, int64_t i) {
  DType dtype = t.base;
  if (t.base == DType::kQ2_K) dtype = facts.heads_per_kv >= 4 ? DType::kQ4_K : DType::kQ3_K;
  if (t.base == DType::kQ3_K && t.mix == Mix::kMedium) dtype = i < 2 ? DType::kQ5_K : DType::kQ4_K;
  if (t.base == DType::kQ3_K && t.mix == Mix::kLarge) dtype = DType::kQ5_K;
  if (t.base == DType::kQ4_K && t.mix == Mix::kSmall && i < 4) dtype = DType::kQ5_K;
  if ((t.base == DType::kQ4_K || t.base == DType::kQ5_K) && t.mix == Mix::kMedium &&
      more_bits(i, facts.values)) {
    dtype = DType::kQ6_K;
  }
  // Eighty layers with shared values: the 70B models, whose values are few and much used.
  if (facts.layers == 80 && facts.heads_per_kv > 1 &&
      (dtype == DType::kQ3_K || dtype == DType::kQ4_K)) {
    dtype = DType::kQ5_K;
  }
  return facts.experts == 8 ? DType::kQ8_0 : dtype;
}

DType ffn_down_type(const FileType& t, const Facts& facts, int64_t layer) {
  const int64_t n = facts.layers;
  if (t.base == DType::kQ2_K) return DType::kQ3_K;
  if (t.base == DType::kQ3_K && t.mix == Mix::kMedium) {
    return layer < n / 16 ? DType::kQ5_K : DType::kQ4_K;
  }
  if (t.base == DType::kQ3_K && t.mix == Mix::kLarge) return DType::kQ5_K;
  if (t.base == DType::kQ4_K && t.mix == Mix::kSmall && layer < n / 8) return DType::kQ5_K;
  if ((t.base == DType::kQ4_K || t.base == DType::kQ5_K) && t.mix == Mix::kMedium &&
      more_bits(layer, n)) {
    return DType::kQ6_K;
  }
  return t.base;
}

DType attention_output_type(const FileType& t, const Facts& facts) {
  if (facts.experts == 8) {
    const bool small = t.base == DType::kQ2_K || t.base == DType::kQ4_K ||
                       (t.base == DType::kQ3_K && t.mix != Mix::kLarge);
    return small ? DType::kQ5_K : t.base;
  }
  if (t.base == DType::kQ2_K) return DType::kQ3_K;
  if (t.base == DType::kQ3_K && t.mix == Mix::kMedium) return DType::kQ4_K;
  if (t.base == DType::kQ3_K && t.mix == Mix::kLarge) return DType::kQ5_K;
  return t.base;
}

DType output_type(const FileType& t, int64_t row) {
  if (row % dtype_info(t.base).block_elements != 0 || t.base == DType::kQ8_0) return DType::kQ8_0;
  return DType::kQ6_K;
}

DType with_fitting_blocks(DType dtype, int64_t row) {
  const auto fits = [&](DType type) { return row % dtype_info(type).block_elements == 0; };
  if (fits(dtype)) return dtype;
  DType smaller = DType::kF16;
  if (dtype == DType::kQ2_K || dtype == DType::kQ3_K) smaller = DType::kQ4_0;
  if (dtype == DType::kQ4_K) smaller = DType::kQ5_0;
  if (dtype == DType::kQ5_K) smaller = DType::kQ5_1;
  if (dtype == DType::kQ6_K) smaller = DType::kQ8_0;
  return fits(smaller) ? smaller : DType::kF16;
}

}  // namespace

Result<FileType> file_type_from_name(std::string_view name) {
  const auto same = [](std::string_view a, std::string_view b) {
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
  };
  std::string_view wanted = name;
  for (const auto& [alias, meant] : kAliases) {
    if (same(name, alias)) wanted = meant;
  }
  std::string known;
  for (const FileType& type : kFileTypes) {
    if (same(wanted, type.name)) return type;
    known += str_cat(known.empty() ? "" : ", ", type.name);
  }
  return error("type '", printable(name), "': expected one of ", known);
}

void set_file_type(const FileType& type, GgufPairs& pairs) {
  constexpr uint32_t kQuantizationVersion = 2;  // of the block formats
  pairs.u32("general.quantization_version", kQuantizationVersion);
  pairs.u32("general.file_type", type.id);
}

std::vector<DType> choose_types(const FileType& type, bool pure,
                                const std::vector<GgufTensor>& tensors) {
  const Facts facts = facts_of(tensors);
  int64_t values_seen = 0;
  const auto mixed = [&](const GgufTensor& tensor) {
    switch (role_of(tensor.name)) {
      case Role::kOutput:
        return output_type(type, tensor.shape.row_elements());
      case Role::kEmbedding:
        return facts.tied ? output_type(type, tensor.shape.row_elements()) : type.base;
      case Role::kValue:
        return value_type(type, facts, values_seen++);
      case Role::kKey:
        return facts.experts == 8 ? DType::kQ8_0 : type.base;
      case Role::kAttentionOutput:
        return attention_output_type(type, facts);
      case Role::kFfnDown:
        return ffn_down_type(type, facts, layer_of(tensor.name));
      case Role::kOther:
        break;
    }
    return type.base;
  };
  std::vector<DType> types(tensors.size());
  // Values are counted in the order of layers, whatever the order in the file.
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return layer_of(tensors[a].name) < layer_of(tensors[b].name);
  });
  for (const size_t i : order) {
    const GgufTensor& tensor = tensors[i];
    types[i] = tensor.dtype;
    if (!takes_type(tensor)) continue;
    const bool plain = pure || !is_quantized(type.base);
    types[i] = with_fitting_blocks(plain ? type.base : mixed(tensor), tensor.shape.row_elements());
  }
  return types;
}

}  // namespace tinyvllm
