// The vocabulary of a GGUF file: its tokenizer.ggml.* keys in the plain struct that text reads.
#include <cmath>
#include <limits>

#include "io/gguf_reader.h"

namespace tinyvllm {
namespace {

constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kScores[] = "tokenizer.ggml.scores";
constexpr char kTypes[] = "tokenizer.ggml.token_type";
constexpr char kMerges[] = "tokenizer.ggml.merges";
constexpr char kCharsmap[] = "tokenizer.ggml.precompiled_charsmap";

Status check_length(const char* key, uint64_t found, size_t tokens) {
  if (found == tokens) return Status();
  return error("key '", key, "' has ", found, " elements; expected one for each of the ", tokens,
               " tokens");
}

Result<std::vector<std::string_view>> take_strings(Metadata& metadata, const char* key) {
  if (!metadata.has(key)) return std::vector<std::string_view>();
  TRY(metadata.strings(key));
  return std::get<std::vector<std::string_view>>(*metadata.take(key));
}

Result<std::vector<float>> take_scores(Metadata& metadata, size_t tokens) {
  std::vector<float> scores;
  const MetadataValue* value = metadata.find(kScores);
  if (value == nullptr) return scores;
  const auto* packed = std::get_if<PackedArray>(value);
  if (packed == nullptr || packed->type != GgufType::kF32) {
    return error("key '", kScores, "' is ", metadata_kind(*value),
                 "; expected an array of float32");
  }
  TRY(check_length(kScores, packed->count, tokens));
  scores.resize(packed->count);
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = packed->at<float>(i);
    if (std::isnan(scores[i])) return error("key '", kScores, "': element ", i, " is not a number");
  }
  metadata.take(kScores);
  return scores;
}

Result<std::vector<int32_t>> take_types(Metadata& metadata, size_t tokens) {
  std::vector<int32_t> types;
  const MetadataValue* value = metadata.find(kTypes);
  if (value == nullptr) return types;
  const auto* packed = std::get_if<PackedArray>(value);
  if (packed == nullptr || (packed->type != GgufType::kI32 && packed->type != GgufType::kU32)) {
    return error("key '", kTypes, "' is ", metadata_kind(*value), "; expected an array of int32");
  }
  TRY(check_length(kTypes, packed->count, tokens));
  types.resize(packed->count);
  for (size_t i = 0; i < types.size(); ++i) {
    types[i] = packed->at<int32_t>(i);
    if (types[i] < 0 || types[i] > GgufVocabulary::kByte) {
      return error("key '", kTypes, "': element ", i, " is ", types[i], "; expected 0 to ",
                   int{GgufVocabulary::kByte});
    }
  }
  metadata.take(kTypes);
  return types;
}

Result<std::string_view> read_charsmap(const Metadata& metadata) {
  const MetadataValue* value = metadata.find(kCharsmap);
  if (value == nullptr) return std::string_view();
  const auto* packed = std::get_if<PackedArray>(value);
  if (packed == nullptr || (packed->type != GgufType::kU8 && packed->type != GgufType::kI8)) {
    return error("key '", kCharsmap, "' is ", metadata_kind(*value),
                 "; expected an array of bytes");
  }
  return std::string_view(packed->data, packed->count);
}

// Some converters write "none" as −1, signed or not. Tokens that generation never uses may lie
// outside: a padding id one past the vocabulary is common, and no reason to refuse a file.
Result<std::optional<int64_t>> read_id(const Metadata& metadata, const char* name, size_t tokens,
                                       bool strict = true) {
  const std::string key = str_cat("tokenizer.ggml.", name, "_token_id");
  std::optional<int64_t> id;
  if (!metadata.has(key)) return id;
  TRY_ASSIGN(id, metadata.integer(key));
  if (*id == -1 || *id == std::numeric_limits<uint32_t>::max()) return std::optional<int64_t>();
  if (*id < 0 || static_cast<uint64_t>(*id) >= tokens) {
    if (!strict) return std::optional<int64_t>();
    return error("key '", key, "' is ", *id, "; the vocabulary has ids 0 to ", tokens - 1);
  }
  return id;
}

Result<std::optional<bool>> read_flag(const Metadata& metadata, const char* key) {
  std::optional<bool> flag;
  if (metadata.has(key)) {
    TRY_ASSIGN(flag, metadata.boolean(key));
  }
  return flag;
}

}  // namespace

Result<std::optional<GgufVocabulary>> take_gguf_vocabulary(Metadata& metadata) {
  if (!metadata.has(kTokens)) return std::optional<GgufVocabulary>();
  GgufVocabulary v;
  TRY_ASSIGN(v.model, metadata.string("tokenizer.ggml.model"));
  TRY_ASSIGN(v.pre, metadata.string_or("tokenizer.ggml.pre", ""));
  TRY_ASSIGN(v.tokens, take_strings(metadata, kTokens));
  const size_t count = v.tokens.size();
  if (count == 0 || count > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return error("key '", kTokens, "' has ", count, " elements; expected 1 to 2147483647");
  }
  TRY_ASSIGN(v.scores, take_scores(metadata, count));
  TRY_ASSIGN(v.types, take_types(metadata, count));
  TRY_ASSIGN(v.merges, take_strings(metadata, kMerges));
  TRY_ASSIGN(v.precompiled_charsmap, read_charsmap(metadata));

  TRY_ASSIGN(v.bos, read_id(metadata, "bos", count));
  TRY_ASSIGN(v.eos, read_id(metadata, "eos", count));
  TRY_ASSIGN(v.eot, read_id(metadata, "eot", count));
  TRY_ASSIGN(v.eom, read_id(metadata, "eom", count));
  TRY_ASSIGN(v.unknown, read_id(metadata, "unknown", count));
  TRY_ASSIGN(v.separator,
             read_id(metadata, "seperator", count, false));  // the format's own spelling
  TRY_ASSIGN(v.padding, read_id(metadata, "padding", count, false));
  TRY_ASSIGN(v.mask, read_id(metadata, "mask", count, false));

  TRY_ASSIGN(v.add_bos, read_flag(metadata, "tokenizer.ggml.add_bos_token"));
  TRY_ASSIGN(v.add_eos, read_flag(metadata, "tokenizer.ggml.add_eos_token"));
  TRY_ASSIGN(v.add_space_prefix, read_flag(metadata, "tokenizer.ggml.add_space_prefix"));
  TRY_ASSIGN(v.remove_extra_whitespaces,
             read_flag(metadata, "tokenizer.ggml.remove_extra_whitespaces"));
  return std::optional<GgufVocabulary>(std::move(v));
}

}  // namespace tinyvllm
