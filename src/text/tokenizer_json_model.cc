#include "text/tokenizer_json_model.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/unigram.h"
#include "text/word_level.h"

namespace tinyvllm {
namespace {

// Older files leave the type out.
Result<std::string_view> type_of(const Json& json) {
  if (const auto type = json.find("type")) return type->string();
  if (json.find("merges").has_value()) return std::string_view("BPE");
  const auto vocabulary = json.find("vocab");
  if (vocabulary.has_value() && vocabulary->kind() == Json::Kind::kArray) {
    return std::string_view("Unigram");
  }
  return error(json.path(), ".type: missing");
}

Result<std::string> string_field_or_empty(const Json& json, std::string_view key) {
  const auto value = json.find(key);
  if (!value.has_value()) return std::string();
  TRY_ASSIGN(const std::string_view text, value->string());
  return std::string(text);
}

// The two strings of a merge: "a b", or ["a", "b"] where they may hold spaces.
struct MergePair {
  std::string_view left, right;
};
Result<MergePair> read_merge(const Json& json, size_t index) {
  MergePair pair;
  if (json.kind() == Json::Kind::kArray) {
    int count = 0;
    TRY(json.for_each_item([&](size_t i, const Json& item) -> Status {
      TRY_ASSIGN(const std::string_view text, item.string());
      (i == 0 ? pair.left : pair.right) = text;
      count += 1;
      return Status();
    }));
    if (count == 2) return pair;
  } else if (const auto text = json.string(); text.ok()) {
    const size_t space = text.value().find(' ');
    if (space != std::string_view::npos &&
        text.value().find(' ', space + 1) == std::string_view::npos) {
      return MergePair{text.value().substr(0, space), text.value().substr(space + 1)};
    }
  }
  return error(json.path(), "[", index, "]: expected two tokens");
}

bool is_comment(const Json& merge) {
  const auto text = merge.string();
  return text.ok() && text.value().starts_with("#version");
}

Result<MergeTable> read_merges(const Json& json, const JsonModel& model,
                               const std::string& continuing_prefix) {
  const Vocabulary& ids = model.ids;
  const TokenTexts& texts = model.texts;
  TRY_ASSIGN(const Json list, json.field("merges"));
  TRY_ASSIGN(const size_t count, list.size());
  if (list.kind() != Json::Kind::kArray) return list.wrong("an array");
  std::vector<PairMerge> merges;
  merges.reserve(count);
  uint32_t rank = 0;
  int32_t guess = 0;
  std::string joined;
  TRY(list.for_each_item([&](size_t index, const Json& item) -> Status {
    if (is_comment(item)) return Status();
    TRY_ASSIGN(const MergePair pair, read_merge(item, index));
    joined = pair.left;
    joined += pair.right.substr(std::min(continuing_prefix.size(), pair.right.size()));
    const int32_t left = ids.find(pair.left);
    const int32_t right = ids.find(pair.right);
    // Tokens are mostly numbered in the order of the merges that make them.
    guess += 1;
    if (!texts.has(guess) || texts[guess] != joined) guess = ids.find(joined);
    const int32_t id = guess;
    if (left < 0 || right < 0 || id < 0) {
      const std::string_view missing = left < 0 ? pair.left : right < 0 ? pair.right : joined;
      return error(list.path(), "[", index, "]: '", printable(missing),
                   "' is not in the vocabulary");
    }
    merges.push_back({left, right, {rank++, id}});
    return Status();
  }));
  return MergeTable(merges);
}

// The vocabulary as the bytes that its strings stand for. What stands for none cannot come up.
Vocabulary to_bytes(const JsonModel& model) {
  Vocabulary bytes;
  bytes.reserve(static_cast<size_t>(model.texts.size()));
  std::string text;
  for (int32_t id = 0; id < model.texts.size(); ++id) {
    text.clear();
    if (model.texts.has(id) && from_byte_alphabet(model.texts[id], text)) bytes.insert(text, id);
  }
  return bytes;
}

Result<std::unique_ptr<TokenModel>> read_bpe(const Json& json, const JsonModel& model,
                                             bool& byte_level) {
  if (const auto dropout = json.find("dropout")) {
    TRY_ASSIGN(const double rate, dropout->number());
    if (rate != 0) return error(dropout->path(), ": expected none, found ", rate);
  }
  BpeOptions options;
  TRY_ASSIGN(options.ignore_merges, json.boolean_field_or("ignore_merges", false));
  TRY_ASSIGN(options.byte_fallback, json.boolean_field_or("byte_fallback", false));
  TRY_ASSIGN(options.fuse_unknown, json.boolean_field_or("fuse_unk", false));
  TRY_ASSIGN(options.continuing_prefix, string_field_or_empty(json, "continuing_subword_prefix"));
  TRY_ASSIGN(options.word_suffix, string_field_or_empty(json, "end_of_word_suffix"));
  if (const auto unknown = json.find("unk_token")) {
    TRY_ASSIGN(const std::string_view text, unknown->string());
    options.unknown = model.ids.find(text);
  }
  TRY_ASSIGN(MergeTable merges, read_merges(json, model, options.continuing_prefix));
  byte_level = byte_level && !options.byte_fallback && options.continuing_prefix.empty() &&
               options.word_suffix.empty();
  options.byte_level = byte_level;
  return std::unique_ptr<TokenModel>(
      std::make_unique<Bpe>(byte_level ? to_bytes(model) : model.ids, std::move(merges),
                            std::move(options), static_cast<size_t>(model.texts.size())));
}

// The number as the `tokenizers` package reads it: all digits as one integer, then one division or
// multiplication by a power of ten, which may miss the nearest number by a bit. Ties between ways
// to cut a text hang on such bits.
double as_read_by_tokenizers(double exact) {
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof text, exact, std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int exponent = 0;
  bool fraction = false;
  const char* at = text;
  for (; at != end && *at != 'e'; ++at) {
    if (*at == '.') fraction = true;
    if (*at < '0' || *at > '9') continue;
    digits = digits * 10 + static_cast<uint64_t>(*at - '0');
    exponent -= fraction ? 1 : 0;
  }
  int written = 0;
  if (at != end) std::from_chars(at + (at[1] == '+' ? 2 : 1), end, written);
  exponent += written;
  constexpr int kLargestPower = 308;
  if (!std::isfinite(exact) || std::abs(exponent) > kLargestPower) return exact;
  const double power = std::pow(10.0, std::abs(exponent));
  const auto value = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? value / power : value * power, exact);
}

Result<std::unique_ptr<TokenModel>> read_unigram(const Json& json, const JsonModel& model,
                                                 const AddedTokens& added) {
  UnigramOptions options;
  TRY_ASSIGN(options.byte_fallback, json.boolean_field_or("byte_fallback", false));
  if (const auto unknown = json.find("unk_id")) {
    TRY_ASSIGN(const int64_t id, unknown->integer());
    if (!model.texts.has(id)) return error(unknown->path(), ": there is no token ", id);
    options.unknown = static_cast<int32_t>(id);
  }
  std::vector<UnigramToken> tokens(static_cast<size_t>(model.texts.size()));
  TRY_ASSIGN(const Json list, json.field("vocab"));
  TRY(list.for_each_item([&](size_t id, const Json& pair) -> Status {
    return pair.for_each_item([&](size_t index, const Json& value) -> Status {
      UnigramToken& token = tokens[id];
      if (index == 1) {
        TRY_ASSIGN(const double score, value.number());
        token.score = as_read_by_tokenizers(score);
        return Status();
      }
      token.text = model.texts[static_cast<int32_t>(id)];
      // Scores would let plain text become a control token.
      if (added.is_special(token.text)) token.kind = UnigramToken::Kind::kNever;
      return Status();
    });
  }));
  return std::unique_ptr<TokenModel>(std::make_unique<Unigram>(tokens, options));
}

Result<std::unique_ptr<TokenModel>> read_word_level(const Json& json, const JsonModel& model) {
  TRY_ASSIGN(const std::string_view unknown, json.string_field("unk_token"));
  const int32_t id = model.ids.find(unknown);
  if (id < 0) return error(json.path(), ".unk_token: '", printable(unknown), "' is no token");
  return std::unique_ptr<TokenModel>(std::make_unique<WordLevel>(model.ids, id));
}

// [["<unk>", 0.0], …]: the id is the place in the list.
Status read_scored_vocabulary(const Json& list, JsonModel& model) {
  return list.for_each_item([&](size_t id, const Json& pair) -> Status {
    if (pair.kind() != Json::Kind::kArray) return pair.wrong("pairs of a token and its score");
    int values = 0;
    TRY(pair.for_each_item([&](size_t index, const Json& value) -> Status {
      values += 1;
      if (index != 0) return Status();
      TRY_ASSIGN(const std::string_view text, value.string());
      TRY(model.texts.set(static_cast<int64_t>(id), text));
      model.ids.insert(text, static_cast<int32_t>(id));
      return Status();
    }));
    return values == 2 ? Status() : Status(pair.wrong("pairs of a token and its score"));
  });
}

}  // namespace

Result<JsonModel> read_model_vocabulary(const Json& json) {
  JsonModel model;
  TRY_ASSIGN(model.type, type_of(json));
  TRY_ASSIGN(const Json vocabulary, json.field("vocab"));
  TRY_ASSIGN(const size_t count, vocabulary.size());
  model.ids.reserve(count);
  if (model.type == "Unigram") {
    TRY(read_scored_vocabulary(vocabulary, model));
    return model;
  }
  TRY(vocabulary.for_each_field([&](std::string_view text, const Json& value) -> Status {
    TRY_ASSIGN(const int64_t id, value.integer());
    TRY(model.texts.set(id, text));
    model.ids.insert(text, static_cast<int32_t>(id));
    return Status();
  }));
  return model;
}

Result<std::unique_ptr<TokenModel>> read_model(const Json& json, const JsonModel& model,
                                               const AddedTokens& added, bool& byte_level) {
  if (model.type == "BPE") return read_bpe(json, model, byte_level);
  byte_level = false;
  if (model.type == "Unigram") return read_unigram(json, model, added);
  if (model.type == "WordLevel") return read_word_level(json, model);
  return error(json.path(), ".type: '", printable(model.type),
               "' is not supported; known are: BPE, Unigram, WordLevel");
}

}  // namespace tinyvllm
