#include "text/gguf_vocabulary.h"

#include <optional>
#include <string>
#include <utility>

#include "text/bpe.h"
#include "text/byte_alphabet.h"
#include "text/end_tokens.h"
#include "text/gguf_pretokenizers.h"
#include "text/pipeline.h"

namespace tinyvllm {
namespace {

using Vocab = GgufVocabulary;

// Tables hold offsets of 32 bits; no published vocabulary comes near.
constexpr size_t kMaxTokens = 1 << 24;
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

std::vector<int32_t> find_end_ids(const Vocab& vocab, std::vector<int64_t> ids) {
  for (const auto& id : {vocab.eos, vocab.eot, vocab.eom}) {
    if (id.has_value()) ids.push_back(*id);
  }
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    if (is_control(vocab, id) && spells_end(vocab.tokens[id])) {
      ids.push_back(static_cast<int64_t>(id));
    }
  }
  return tidy_end_ids(std::move(ids), vocab.tokens.size());
}

Status add_bos_eos(const Vocab& vocab, bool bos_by_default, PipelineParts& parts) {
  if (vocab.add_bos.value_or(bos_by_default)) {
    if (!vocab.bos.has_value()) {
      return error("tokenizer.ggml.add_bos_token is true, but there is no bos_token_id");
    }
    parts.prefix_ids.push_back(static_cast<int32_t>(*vocab.bos));
  }
  if (vocab.add_eos.value_or(false)) {
    if (!vocab.eos.has_value()) {
      return error("tokenizer.ggml.add_eos_token is true, but there is no eos_token_id");
    }
    parts.suffix_ids.push_back(static_cast<int32_t>(*vocab.eos));
  }
  return Status();
}

// A token's bytes: what its characters stand for, or, where some stand for none, the token itself.
std::string bytes_of(std::string_view token) {
  std::string bytes;
  return from_byte_alphabet(token, bytes) ? bytes : std::string(token);
}

Result<MergeTable> read_merges(const Vocab& vocab, const Vocabulary& ids) {
  MergeTable table(vocab.merges.size());
  for (size_t rank = 0; rank < vocab.merges.size(); ++rank) {
    const std::string_view merge = vocab.merges[rank];
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) {
      return error("tokenizer.ggml.merges[", rank, "]: expected two tokens, found '",
                   printable(merge), "'");
    }
    const std::string left = bytes_of(merge.substr(0, space));
    const std::string right = bytes_of(merge.substr(space + 1));
    const int32_t left_id = ids.find(left);
    const int32_t right_id = ids.find(right);
    const int32_t id = ids.find(left + right);
    if (left_id < 0 || right_id < 0 || id < 0) {
      return error("tokenizer.ggml.merges[", rank, "]: '", printable(merge),
                   "' names a token that is not in tokenizer.ggml.tokens");
    }
    table.insert(left_id, right_id, {static_cast<uint32_t>(rank), id});
  }
  return table;
}

Result<std::unique_ptr<Tokenizer>> make_byte_level(const Vocab& vocab,
                                                   const std::vector<int64_t>& end_ids) {
  TRY_ASSIGN(GgufPreTokenizer pre, make_gguf_pretokenizer(vocab.pre));
  PipelineParts parts;
  parts.kind = str_cat("byte-level BPE (", vocab.pre.empty() ? "default" : vocab.pre, ")");
  parts.added = added_tokens(vocab);
  parts.pretokenizers = std::move(pre.steps);
  parts.end_ids = find_end_ids(vocab, end_ids);
  TRY(add_bos_eos(vocab, pre.add_bos, parts));

  Vocabulary ids;
  ids.reserve(vocab.tokens.size(), vocab.tokens.size() * 8);
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    TRY(parts.texts.set(static_cast<int64_t>(id), vocab.tokens[id]));
    parts.special.push_back(is_control(vocab, id));
    ids.insert(bytes_of(vocab.tokens[id]), static_cast<int32_t>(id));
  }
  parts.texts.pack();
  parts.decoders.push_back(make_byte_level_decoder());
  TRY_ASSIGN(MergeTable merges, read_merges(vocab, ids));
  BpeOptions options;
  options.byte_level = true;
  options.ignore_merges = pre.ignore_merges;
  parts.model =
      std::make_unique<Bpe>(std::move(ids), std::move(merges), options, vocab.tokens.size());
  return std::unique_ptr<Tokenizer>(std::make_unique<Pipeline>(std::move(parts)));
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_gguf_tokenizer(const Vocab& vocab,
                                                       const std::vector<int64_t>& end_ids) {
  TRY(check_sizes(vocab));
  TRY(check_ids(vocab));
  if (vocab.model == "gpt2") return make_byte_level(vocab, end_ids);
  return error("tokenizer.ggml.model: unknown tokenizer '", printable(vocab.model),
               "'; known are: gpt2");
}

}  // namespace tinyvllm
