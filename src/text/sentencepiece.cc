#include "text/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/utf8.h"
#include "text/bpe.h"
#include "text/end_tokens.h"
#include "text/sentencepiece_model.h"
#include "text/sentencepiece_normalizer.h"
#include "text/tokenizer_config.h"
#include "text/unigram.h"

namespace tinyvllm {
namespace {

using Type = SentencePieceVocabulary::Type;

// Pieces that text can become by way of scores. Unused ones could be steps on the way to longer
// ones; no published model has any.
bool is_mergeable(Type type) { return type == Type::kNormal || type == Type::kUserDefined; }

Status check(const SentencePieceVocabulary& vocabulary, std::string_view source) {
  if (vocabulary.pieces.size() > static_cast<size_t>(TokenTexts::kMaxTokens)) {
    return error(source, ": ", vocabulary.pieces.size(), " pieces, at most ",
                 TokenTexts::kMaxTokens, " are supported");
  }
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    if (std::isnan(vocabulary.pieces[id].score)) {
      return error(source, ": the score of piece ", id, " is not a number");
    }
  }
  return Status();
}

int32_t find_unknown(const SentencePieceVocabulary& vocabulary) {
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    if (vocabulary.pieces[id].type == Type::kUnknown) return static_cast<int32_t>(id);
  }
  return Vocabulary::kNone;
}

// Scores as ranks: 0 for the best, the same for equal ones.
std::vector<uint32_t> rank_scores(const SentencePieceVocabulary& vocabulary) {
  std::vector<float> scores;
  scores.reserve(vocabulary.pieces.size());
  for (const auto& piece : vocabulary.pieces) scores.push_back(piece.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<uint32_t> ranks;
  ranks.reserve(vocabulary.pieces.size());
  for (const auto& piece : vocabulary.pieces) {
    const auto place =
        std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>());
    ranks.push_back(static_cast<uint32_t>(place - scores.begin()));
  }
  return ranks;
}

// Two neighbours merge when together they are a piece, the best piece first. As a list of merges:
// every way to cut a piece into two.
MergeTable merges_from_scores(const SentencePieceVocabulary& vocabulary, const Vocabulary& ids) {
  std::vector<PairMerge> merges;
  const std::vector<uint32_t> ranks = rank_scores(vocabulary);
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const auto& piece = vocabulary.pieces[id];
    if (!is_mergeable(piece.type) || ids.find(piece.text) != static_cast<int32_t>(id)) continue;
    for (size_t cut = 1; cut < piece.text.size(); ++cut) {
      if ((static_cast<unsigned char>(piece.text[cut]) & 0xC0) == 0x80) continue;
      const int32_t left = ids.find(piece.text.substr(0, cut));
      if (left == Vocabulary::kNone) continue;
      const int32_t right = ids.find(piece.text.substr(cut));
      if (right == Vocabulary::kNone) continue;
      merges.push_back({left, right, {ranks[id], static_cast<int32_t>(id)}});
    }
  }
  return MergeTable(merges);
}

std::unique_ptr<TokenModel> make_bpe(const SentencePieceVocabulary& vocabulary) {
  Vocabulary mergeable;
  mergeable.reserve(vocabulary.pieces.size());
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const auto& piece = vocabulary.pieces[id];
    if (is_mergeable(piece.type)) mergeable.insert(piece.text, static_cast<int32_t>(id));
  }
  MergeTable merges = merges_from_scores(vocabulary, mergeable);
  BpeOptions options;
  options.byte_fallback = vocabulary.byte_fallback;
  options.fuse_unknown = true;
  options.unknown = find_unknown(vocabulary);
  // The bytes join after the merges are made: they are for what nothing else spells.
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const auto& piece = vocabulary.pieces[id];
    if (piece.type == Type::kByte) mergeable.insert(piece.text, static_cast<int32_t>(id));
  }
  return std::make_unique<Bpe>(std::move(mergeable), std::move(merges), std::move(options),
                               vocabulary.pieces.size());
}

std::unique_ptr<TokenModel> make_unigram(const SentencePieceVocabulary& vocabulary) {
  std::vector<UnigramToken> tokens;
  tokens.reserve(vocabulary.pieces.size());
  for (const auto& piece : vocabulary.pieces) {
    UnigramToken token{piece.text, piece.score, UnigramToken::Kind::kNormal};
    if (!is_mergeable(piece.type)) token.kind = UnigramToken::Kind::kNever;
    if (piece.type == Type::kUserDefined) token.kind = UnigramToken::Kind::kUserDefined;
    tokens.push_back(token);
  }
  UnigramOptions options;
  options.arithmetic = UnigramArithmetic::kSentencePiece;
  options.byte_fallback = vocabulary.byte_fallback;
  options.unknown = find_unknown(vocabulary);
  return std::make_unique<Unigram>(tokens, options);
}

// Control pieces are spelled by text only on demand; user-defined ones are cut out of the
// normalized text, where (but for the unigram model, which prefers them by itself) nothing may join
// them.
void add_tokens(const SentencePieceVocabulary& vocabulary, AddedTokens& added) {
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const auto& piece = vocabulary.pieces[id];
    AddedToken token;
    token.id = static_cast<int32_t>(id);
    token.content = piece.text;
    token.special = piece.type == Type::kControl || piece.type == Type::kUnknown;
    token.normalized = !token.special;
    const bool cut_out = piece.type == Type::kUserDefined && vocabulary.is_bpe;
    if (token.special || cut_out) added.insert(token, piece.text);
  }
}

Status set_texts(const SentencePieceVocabulary& vocabulary, PipelineParts& parts) {
  std::vector<std::unique_ptr<std::string>> repaired;  // until texts are packed
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const auto& piece = vocabulary.pieces[id];
    std::string_view text = piece.text;
    if (piece.type == Type::kUnknown) text = vocabulary.unknown_surface;
    if (!is_utf8(text)) {
      repaired.push_back(std::make_unique<std::string>(utf8_replace_invalid(text)));
      text = *repaired.back();
    }
    TRY(parts.texts.set(static_cast<int64_t>(id), text));
    parts.special.push_back(piece.type == Type::kControl);
  }
  parts.texts.pack();
  return Status();
}

int32_t find_control(const SentencePieceVocabulary& vocabulary, std::string_view text) {
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const auto& piece = vocabulary.pieces[id];
    if (piece.type == Type::kControl && piece.text == text) return static_cast<int32_t>(id);
  }
  return Vocabulary::kNone;
}

// Tokens that were added to a finished model are only in the files beside it, and so is which of
// its own are for control.
Status add_configured_tokens(const TokenizerConfig& config, SentencePieceVocabulary& vocabulary) {
  std::vector<const AddedToken*> tokens;
  for (const AddedToken& token : config.added_tokens) tokens.push_back(&token);
  std::sort(tokens.begin(), tokens.end(), [](auto a, auto b) { return a->id < b->id; });
  for (const AddedToken* token : tokens) {
    const auto id = static_cast<size_t>(token->id);
    if (id < vocabulary.pieces.size()) {
      Type& type = vocabulary.pieces[id].type;
      if (token->special && type != Type::kUnknown) type = Type::kControl;
      continue;
    }
    if (id > vocabulary.pieces.size() || token->content.empty()) {
      return error("tokenizer_config.json: added_tokens_decoder: token ", id,
                   " does not follow the ", vocabulary.pieces.size(), " tokens before it");
    }
    vocabulary.pieces.push_back(
        {token->content, 0, token->special ? Type::kControl : Type::kUserDefined});
  }
  return Status();
}

}  // namespace

Result<PipelineParts> make_sentencepiece_parts(const SentencePieceVocabulary& vocabulary,
                                               std::string_view source) {
  TRY(check(vocabulary, source));
  PipelineParts parts;
  parts.kind = vocabulary.is_bpe ? "SentencePiece BPE" : "SentencePiece unigram";
  TRY_ASSIGN(auto normalizer, make_sentencepiece_normalizer(vocabulary));
  parts.normalizers.push_back(std::move(normalizer));
  parts.model = vocabulary.is_bpe ? make_bpe(vocabulary) : make_unigram(vocabulary);
  add_tokens(vocabulary, parts.added);
  TRY(set_texts(vocabulary, parts));
  parts.left_out_ends_bytes = true;
  return parts;
}

Result<std::unique_ptr<Tokenizer>> make_sentencepiece_tokenizer(const TokenizerData& data) {
  TRY_ASSIGN(SentencePieceVocabulary vocabulary,
             read_sentencepiece_model(data.sentencepiece_model));
  TRY_ASSIGN(const TokenizerConfig config, read_tokenizer_config(data));
  TRY(add_configured_tokens(config, vocabulary));
  TRY_ASSIGN(PipelineParts parts, make_sentencepiece_parts(vocabulary, "tokenizer.model"));
  const bool strips = vocabulary.add_dummy_prefix || vocabulary.remove_extra_whitespaces;
  parts.decoders.push_back(make_sentencepiece_decoder(strips, vocabulary.remove_extra_whitespaces));
  parts.decoders.push_back(make_byte_fallback_decoder(true));

  const int32_t bos = find_control(vocabulary, config.bos_token.value_or("<s>"));
  const int32_t eos = find_control(vocabulary, config.eos_token.value_or("</s>"));
  const bool is_llama = config.tokenizer_class.starts_with("LlamaTokenizer");
  if (config.add_bos_token.value_or(is_llama) && bos >= 0) parts.prefix_ids.push_back(bos);
  if (config.add_eos_token.value_or(false) && eos >= 0) parts.suffix_ids.push_back(eos);

  EndTokens ends;
  for (const int64_t id : data.end_ids) ends.add_named(id);
  ends.add_named(eos);
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const auto& piece = vocabulary.pieces[id];
    if (piece.type == Type::kControl) ends.add_if_spelled(piece.text, static_cast<int64_t>(id));
  }
  parts.end_ids = ends.tidy(vocabulary.pieces.size());
  return std::unique_ptr<Tokenizer>(std::make_unique<Pipeline>(std::move(parts)));
}

}  // namespace tinyvllm
