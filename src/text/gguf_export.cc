#include "text/gguf_export.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "text/byte_token.h"
#include "text/gguf_pretokenizers.h"
#include "text/gguf_vocabulary.h"
#include "text/json.h"
#include "text/sentencepiece_model.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"

namespace tinyvllm {
namespace {

using Type = GgufVocabulary::TokenType;

// Everything that ways of splitting disagree about: digits in runs, contractions of either case,
// spaces and newlines in runs and at ends, marks on letters, scripts without spaces, symbols.
constexpr std::string_view kProbe =
    "Hello, world! It's 12345678 o'CLOCK; I'LL see, we'Re\n\n  def f(x_1):\n\treturn x**2 == 3.14"
    "   \n \r\n www.example.com/a?b=c&d  ÀÉÎõü e\u0301o\u0302 Straße ſ \u01C5 \u2167 ½ ٣٤ "
    "你好，世界。12年3月 こんにちは カタカナ 한국어 안녕 Привет мир नमस्ते مرحبا שלום "
    "😀👍🏽 \u200D …—“quotes” «x» $5.00 €7 #tag @user snake_case camelCase "
    "HTTPServer "
    "!!!??? (((x))) ''s ''T a\u00A0b\u3000c\t\t d    e     ";

struct Builder {
  ExportedVocabulary out;
  std::unordered_map<std::string, int64_t> ids;
  bool ignore_merges = false;

  Status place(std::string_view token, int64_t id, int32_t type, int64_t vocab_size) {
    if (id < 0 || id >= vocab_size) {
      return error("tokenizer: token '", printable(token), "' has the id ", id,
                   "; the model has ids 0 to ", vocab_size - 1);
    }
    out.tokens[static_cast<size_t>(id)] = token;
    out.types[static_cast<size_t>(id)] = type;
    ids[std::string(token)] = id;
    return Status();
  }
  void start(int64_t vocab_size) {
    out.tokens.resize(static_cast<size_t>(vocab_size));
    out.types.assign(static_cast<size_t>(vocab_size), Type::kUnused);
  }
  // Ids that no token has: readers want distinct strings.
  void fill_gaps() {
    for (size_t id = 0; id < out.tokens.size(); ++id) {
      if (out.types[id] == Type::kUnused && out.tokens[id].empty()) {
        out.tokens[id] = str_cat("[PAD", id, "]");
      }
    }
  }
  std::optional<int64_t> find(const std::optional<std::string>& token) const {
    if (!token) return std::nullopt;
    const auto found = ids.find(*token);
    return found == ids.end() ? std::nullopt : std::optional<int64_t>(found->second);
  }
};

// "a b", or ["a", "b"].
Result<std::string> read_merge(const Json& merge) {
  if (merge.kind() == Json::Kind::kString) {
    TRY_ASSIGN(const std::string_view text, merge.string());
    return std::string(text);
  }
  TRY_ASSIGN(const std::vector<Json> parts, merge.items());
  if (parts.size() != 2) return merge.wrong("two parts");
  TRY_ASSIGN(const std::string_view left, parts[0].string());
  TRY_ASSIGN(const std::string_view right, parts[1].string());
  return str_cat(left, " ", right);
}

// Added tokens that the vocabulary does not hold follow it, in their order.
Status read_added(const Json& root, int64_t next_id, int64_t vocab_size, Builder& builder) {
  const std::optional<Json> list = root.find("added_tokens");
  if (!list) return Status();
  return list->for_each_item([&](size_t, const Json& item) -> Status {
    TRY_ASSIGN(const std::string_view content, item.string_field("content"));
    TRY_ASSIGN(const bool special, item.boolean_field_or("special", false));
    if (content.empty()) return Status();
    const auto known = builder.ids.find(std::string(content));
    const int64_t id = known == builder.ids.end() ? next_id++ : known->second;
    if (builder.out.unknown == id) return Status();
    return builder.place(content, id, special ? Type::kControl : Type::kUserDefined, vocab_size);
  });
}

// A token's score is its rank among the merges, as in the models that SentencePiece trains.
void score_by_merges(Builder& builder) {
  ExportedVocabulary& out = builder.out;
  out.scores.assign(out.tokens.size(), 0);
  std::vector<bool> scored(out.tokens.size(), false);
  for (size_t rank = 0; rank < out.merges.size(); ++rank) {
    std::string token = out.merges[rank];
    token.erase(token.find(' '), 1);
    const auto found = builder.ids.find(token);
    if (found == builder.ids.end()) continue;
    const auto id = static_cast<size_t>(found->second);
    if (!scored[id]) out.scores[id] = -static_cast<float>(rank);
    scored[id] = true;
  }
  // Single characters are not merged; only being there matters.
  const float last = -static_cast<float>(out.merges.size());
  for (size_t id = 0; id < scored.size(); ++id) {
    if (!scored[id] && out.types[id] == Type::kNormal) out.scores[id] = last;
  }
  out.merges.clear();
}

Result<Builder> read_json_vocabulary(std::string_view text, int64_t vocab_size) {
  TRY_ASSIGN(const JsonDocument document, JsonDocument::parse(text, "tokenizer.json"));
  const Json root = document.root();
  TRY_ASSIGN(const Json model, root.field("model"));
  if (const auto type = model.find("type")) {
    TRY_ASSIGN(const std::string_view name, type->string());
    if (name != "BPE") return type->wrong("BPE, which is what can be written to a GGUF file");
  }
  Builder builder;
  builder.start(vocab_size);
  TRY_ASSIGN(const bool byte_fallback, model.boolean_field_or("byte_fallback", false));
  TRY_ASSIGN(builder.ignore_merges, model.boolean_field_or("ignore_merges", false));
  TRY_ASSIGN(const Json vocabulary, model.field("vocab"));
  int64_t next_id = 0;
  TRY(vocabulary.for_each_field([&](std::string_view token, const Json& value) -> Status {
    TRY_ASSIGN(const int64_t id, value.integer());
    next_id += 1;
    const bool is_byte = byte_fallback && parse_byte_token(token).has_value();
    return builder.place(token, id, is_byte ? Type::kByte : Type::kNormal, vocab_size);
  }));
  TRY_ASSIGN(const Json merges, model.field("merges"));
  TRY(merges.for_each_item([&](size_t, const Json& item) -> Status {
    TRY_ASSIGN(builder.out.merges.emplace_back(), read_merge(item));
    return Status();
  }));
  if (const auto unknown = model.find("unk_token")) {
    TRY_ASSIGN(const std::string_view token, unknown->string());
    builder.out.unknown = builder.find(std::string(token));
    if (builder.out.unknown) {
      builder.out.types[static_cast<size_t>(*builder.out.unknown)] = Type::kUnknown;
    }
  }
  TRY(read_added(root, next_id, vocab_size, builder));
  builder.out.model = byte_fallback ? "llama" : "gpt2";
  if (byte_fallback) score_by_merges(builder);
  return builder;
}

Result<Builder> read_sentencepiece(const TokenizerData& data, const TokenizerConfig& config,
                                   int64_t vocab_size) {
  TRY_ASSIGN(const SentencePieceVocabulary model,
             read_sentencepiece_model(data.sentencepiece_model));
  if (!model.is_bpe) {
    return error("tokenizer.model: a unigram model; only BPE can be written to a GGUF file");
  }
  Builder builder;
  builder.start(vocab_size);
  builder.out.model = "llama";
  builder.out.scores.assign(builder.out.tokens.size(), 0);
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& piece = model.pieces[id];
    TRY(builder.place(piece.text, static_cast<int64_t>(id), static_cast<int32_t>(piece.type),
                      vocab_size));
    builder.out.scores[id] = piece.score;
    if (piece.type == SentencePieceVocabulary::Type::kUnknown) {
      builder.out.unknown = static_cast<int64_t>(id);
    }
  }
  for (const AddedToken& token : config.added_tokens) {
    if (builder.out.unknown == token.id) continue;
    TRY(builder.place(token.content, token.id, token.special ? Type::kControl : Type::kUserDefined,
                      vocab_size));
  }
  return builder;
}

// What the files put before and after a text.
void find_frame(const Tokenizer& original, ExportedVocabulary& out) {
  const std::vector<int32_t> bare = original.encode("a", {false, false});
  const std::vector<int32_t> framed = original.encode("a", {true, false});
  if (framed.size() <= bare.size()) return;
  out.add_bos = out.bos && framed.front() == *out.bos;
  out.add_eos = out.eos && framed.back() == *out.eos;
}

bool tokenizes_alike(const Tokenizer& original, const ExportedVocabulary& out) {
  const auto exported = make_gguf_tokenizer(out.view(), {});
  if (!exported.ok()) return false;
  for (const bool special : {false, true}) {
    if (original.encode(kProbe, {special, false}) !=
        exported.value()->encode(kProbe, {special, false})) {
      return false;
    }
  }
  return true;
}

Status find_reading(const Tokenizer& original, bool ignore_merges, ExportedVocabulary& out) {
  if (out.model == "llama") {
    out.pre = "default";
    for (const bool prefix : {true, false}) {
      out.add_space_prefix = prefix;
      if (tokenizes_alike(original, out)) return Status();
    }
    return error("tokenizer: no SentencePiece vocabulary tokenizes like these files do");
  }
  for (const std::string_view name : gguf_pretokenizer_names()) {
    const auto pretokenizer = make_gguf_pretokenizer(name);
    if (!pretokenizer.ok() || pretokenizer.value().ignore_merges != ignore_merges) continue;
    out.pre = name;
    if (tokenizes_alike(original, out)) return Status();
  }
  return error(
      "tokenizer: text is split in a way that GGUF files have no name for (tokenizer.ggml.pre)");
}

}  // namespace

GgufVocabulary ExportedVocabulary::view() const {
  GgufVocabulary v;
  v.model = model;
  v.pre = pre;
  v.tokens.assign(tokens.begin(), tokens.end());
  v.scores = scores;
  v.types = types;
  v.merges.assign(merges.begin(), merges.end());
  v.bos = bos;
  v.eos = eos;
  v.unknown = unknown;
  v.add_bos = add_bos;
  v.add_eos = add_eos;
  v.add_space_prefix = add_space_prefix;
  return v;
}

Result<ExportedVocabulary> export_vocabulary(const TokenizerData& data, int64_t vocab_size) {
  TRY_ASSIGN(const std::unique_ptr<Tokenizer> original, Tokenizer::create(data));
  TRY_ASSIGN(const TokenizerConfig config, read_tokenizer_config(data));
  TRY_ASSIGN(Builder builder, data.tokenizer_json.empty()
                                  ? read_sentencepiece(data, config, vocab_size)
                                  : read_json_vocabulary(data.tokenizer_json, vocab_size));
  builder.out.bos = builder.find(config.bos_token);
  builder.out.eos = builder.find(config.eos_token);
  builder.fill_gaps();
  find_frame(*original, builder.out);
  TRY(find_reading(*original, builder.ignore_merges, builder.out));
  return std::move(builder.out);
}

}  // namespace tinyvllm
