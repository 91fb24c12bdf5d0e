#include "text/gguf_vocabulary.h"

#include <optional>
#include <string>
#include <utility>

#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/byte_token.h"
#include "text/end_tokens.h"
#include "text/gguf_pretokenizers.h"
#include "text/pipeline.h"
#include "text/sentencepiece.h"

namespace tinyvllm {
namespace {

using Vocab = GgufVocabulary;

// Tables hold offsets of 32 bits; no published vocabulary comes near.
constexpr size_t kMaxTokens = TokenTexts::kMaxTokens;
constexpr size_t kMaxBytes = 1u << 31;

Status check_sizes(const Vocab& vocab) {
  if (vocab.tokens.empty()) return error("tokenizer.ggml.tokens: missing or empty");
  if (vocab.tokens.size() > kMaxTokens) {
    return error("tokenizer.ggml.tokens: ", vocab.tokens.size(), " tokens, at most ", kMaxTokens,
                 " are supported");
  }
  size_t bytes = 0;
  for (const std::string_view token : vocab.tokens) bytes += token.size();
  if (bytes > kMaxBytes) return error("tokenizer.ggml.tokens: ", bytes, " bytes of tokens");
  const auto matches = [&](size_t size) { return size == 0 || size == vocab.tokens.size(); };
  if (!matches(vocab.types.size()) || !matches(vocab.scores.size())) {
    return error("tokenizer.ggml: ", vocab.tokens.size(), " tokens but ", vocab.types.size(),
                 " types and ", vocab.scores.size(), " scores");
  }
  return Status();
}

Status check_id(const char* key, const std::optional<int64_t>& id, const Vocab& vocab) {
  const auto count = static_cast<int64_t>(vocab.tokens.size());
  if (!id.has_value() || (*id >= 0 && *id < count)) return Status();
  return error("tokenizer.ggml.", key, ": token ", *id, " is outside the vocabulary of ", count);
}

Status check_ids(const Vocab& vocab) {
  TRY(check_id("bos_token_id", vocab.bos, vocab));
  TRY(check_id("eos_token_id", vocab.eos, vocab));
  TRY(check_id("eot_token_id", vocab.eot, vocab));
  TRY(check_id("eom_token_id", vocab.eom, vocab));
  TRY(check_id("unknown_token_id", vocab.unknown, vocab));
  return Status();
}

int32_t type_of(const Vocab& vocab, size_t id) {
  return vocab.types.empty() ? Vocab::kNormal : vocab.types[id];
}

bool is_control(const Vocab& vocab, size_t id) {
  const int32_t type = type_of(vocab, id);
  return type == Vocab::kControl || type == Vocab::kUnknown;
}

AddedTokens added_tokens(const Vocab& vocab) {
  AddedTokens added;
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    const bool control = is_control(vocab, id);
    if (!control && type_of(vocab, id) != Vocab::kUserDefined) continue;
    const std::string content(vocab.tokens[id]);
    added.insert({.id = static_cast<int32_t>(id), .content = content, .special = control}, content);
  }
  return added;
}

std::vector<int32_t> find_end_ids(const Vocab& vocab, const std::vector<int64_t>& listed) {
  EndTokens ends;
  for (const int64_t id : listed) ends.add_named(id);
  for (const auto& id : {vocab.eos, vocab.eot, vocab.eom}) {
    if (id.has_value()) ends.add_named(*id);
  }
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    if (is_control(vocab, id)) ends.add_if_spelled(vocab.tokens[id], static_cast<int64_t>(id));
  }
  return ends.tidy(vocab.tokens.size());
}

Status add_bos_eos(const Vocab& vocab, bool bos_by_default, bool eos_by_default,
                   PipelineParts& parts) {
  if (vocab.add_bos.value_or(bos_by_default)) {
    if (!vocab.bos.has_value()) {
      return error("tokenizer.ggml.add_bos_token is true, but there is no bos_token_id");
    }
    parts.prefix_ids.push_back(static_cast<int32_t>(*vocab.bos));
  }
  if (vocab.add_eos.value_or(eos_by_default)) {
    if (!vocab.eos.has_value()) {
      return error("tokenizer.ggml.add_eos_token is true, but there is no eos_token_id");
    }
    parts.suffix_ids.push_back(static_cast<int32_t>(*vocab.eos));
  }
  return Status();
}

Result<MergeTable> read_merges(const Vocab& vocab, const Vocabulary& ids) {
  std::vector<PairMerge> merges;
  merges.reserve(vocab.merges.size());
  std::string joined;
  for (size_t rank = 0; rank < vocab.merges.size(); ++rank) {
    const std::string_view merge = vocab.merges[rank];
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) {
      return error("tokenizer.ggml.merges[", rank, "]: expected two tokens, found '",
                   printable(merge), "'");
    }
    joined = merge.substr(0, space);
    joined += merge.substr(space + 1);
    const int32_t left = ids.find(merge.substr(0, space));
    const int32_t right = ids.find(merge.substr(space + 1));
    const int32_t id = ids.find(joined);
    if (left < 0 || right < 0 || id < 0) {
      return error("tokenizer.ggml.merges[", rank, "]: '", printable(merge),
                   "' names a token that is not in tokenizer.ggml.tokens");
    }
    merges.push_back({left, right, {static_cast<uint32_t>(rank), id}});
  }
  return MergeTable(merges);
}

// The vocabulary as the bytes that its strings stand for. What stands for none cannot come up.
Vocabulary to_bytes(const Vocab& vocab) {
  Vocabulary bytes;
  bytes.reserve(vocab.tokens.size());
  std::string text;
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    text.clear();
    if (from_byte_alphabet(vocab.tokens[id], text)) bytes.insert(text, static_cast<int32_t>(id));
  }
  return bytes;
}

Result<std::unique_ptr<Tokenizer>> make_byte_level(const Vocab& vocab,
                                                   const std::vector<int64_t>& end_ids) {
  TRY_ASSIGN(GgufPreTokenizer pre, make_gguf_pretokenizer(vocab.pre));
  PipelineParts parts;
  parts.kind = str_cat("byte-level BPE (", vocab.pre.empty() ? "default" : vocab.pre, ")");
  parts.added = added_tokens(vocab);
  parts.normalizers = std::move(pre.normalizers);
  parts.pretokenizers = std::move(pre.steps);
  parts.decoders.push_back(make_byte_level_decoder());
  parts.end_ids = find_end_ids(vocab, end_ids);
  TRY(add_bos_eos(vocab, pre.add_bos, false, parts));

  Vocabulary ids;
  ids.reserve(vocab.tokens.size());
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    TRY(parts.texts.set(static_cast<int64_t>(id), vocab.tokens[id]));
    parts.special.push_back(is_control(vocab, id));
    ids.insert(vocab.tokens[id], static_cast<int32_t>(id));
  }
  parts.texts.pack();
  TRY_ASSIGN(MergeTable merges, read_merges(vocab, ids));
  BpeOptions options;
  options.byte_level = !pre.in_byte_alphabet;
  options.ignore_merges = pre.ignore_merges;
  parts.model = std::make_unique<Bpe>(options.byte_level ? to_bytes(vocab) : std::move(ids),
                                      std::move(merges), options, vocab.tokens.size());
  return std::unique_ptr<Tokenizer>(std::make_unique<Pipeline>(std::move(parts)));
}

// Files of old converters have no types; byte pieces are known by their spelling.
SentencePieceVocabulary::Type piece_type(const Vocab& vocab, size_t id) {
  using Type = SentencePieceVocabulary::Type;
  const int32_t type = type_of(vocab, id);
  if (vocab.unknown.value_or(0) == static_cast<int64_t>(id)) return Type::kUnknown;
  if (vocab.types.empty() && parse_byte_token(vocab.tokens[id]).has_value()) return Type::kByte;
  if (vocab.types.empty() &&
      (vocab.bos == static_cast<int64_t>(id) || vocab.eos == static_cast<int64_t>(id))) {
    return Type::kControl;
  }
  if (type == Vocab::kUnknown)
    return Type::kControl;  // there is one unknown piece, and it has an id
  return type >= 1 && type <= 6 ? static_cast<Type>(type) : Type::kNormal;
}

Result<std::unique_ptr<Tokenizer>> make_sentencepiece(const Vocab& vocab, bool is_bpe,
                                                      const std::vector<int64_t>& end_ids) {
  if (vocab.scores.empty()) return error("tokenizer.ggml.scores: missing");
  SentencePieceVocabulary pieces;
  pieces.is_bpe = is_bpe;
  pieces.charsmap = vocab.precompiled_charsmap;
  pieces.add_dummy_prefix = vocab.add_space_prefix.value_or(true);
  pieces.remove_extra_whitespaces = vocab.remove_extra_whitespaces.value_or(false);
  size_t bytes = 0;
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    const SentencePieceVocabulary::Type type = piece_type(vocab, id);
    bytes += type == SentencePieceVocabulary::Type::kByte ? 1 : 0;
    pieces.pieces.push_back({vocab.tokens[id], vocab.scores[id], type});
  }
  pieces.byte_fallback = bytes >= 256;
  TRY_ASSIGN(PipelineParts parts, make_sentencepiece_parts(pieces, "tokenizer.ggml"));
  parts.decoders.push_back(
      make_sentencepiece_decoder(pieces.add_dummy_prefix, pieces.remove_extra_whitespaces));
  parts.decoders.push_back(make_byte_fallback_decoder(true));
  parts.end_ids = find_end_ids(vocab, end_ids);
  TRY(add_bos_eos(vocab, is_bpe && vocab.bos.has_value(), !is_bpe && vocab.eos.has_value(), parts));
  return std::unique_ptr<Tokenizer>(std::make_unique<Pipeline>(std::move(parts)));
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_gguf_tokenizer(const Vocab& vocab,
                                                       const std::vector<int64_t>& end_ids) {
  TRY(check_sizes(vocab));
  TRY(check_ids(vocab));
  if (vocab.model == "gpt2") return make_byte_level(vocab, end_ids);
  if (vocab.model == "llama") return make_sentencepiece(vocab, true, end_ids);
  if (vocab.model == "t5") return make_sentencepiece(vocab, false, end_ids);
  return error("tokenizer.ggml.model: unknown tokenizer '", printable(vocab.model),
               "'; known are: gpt2, llama, t5");
}

}  // namespace tinyvllm
