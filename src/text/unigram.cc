#include "text/unigram.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "text/byte_token.h"

namespace tinyvllm {
namespace {

// An unknown character is this much worse than the worst token.
constexpr double kUnknownPenalty = 10.0;

}  // namespace

Unigram::Unigram(const std::vector<UnigramToken>& tokens, const UnigramOptions& options)
    : options_(options) {
  std::vector<std::string_view> texts;
  texts.reserve(tokens.size());
  entries_.reserve(tokens.size());
  fallback_ids_.fill(-1);
  double worst = std::numeric_limits<double>::infinity();
  double best = 0.1;  // as SentencePiece has it: positive, so that the bonus below is
  for (const UnigramToken& token : tokens) {
    const auto id = static_cast<int32_t>(entries_.size());
    entries_.push_back({token.score, token.kind});
    const bool never = token.kind == UnigramToken::Kind::kNever;
    texts.push_back(never ? std::string_view() : token.text);
    if (const auto byte = parse_byte_token(token.text)) fallback_ids_[*byte] = id;
    // SentencePiece leaves control tokens and the like out of the range of scores.
    const bool counts = options_.arithmetic == UnigramArithmetic::kDouble ||
                        token.kind == UnigramToken::Kind::kNormal;
    if (counts) worst = std::min(worst, token.score);
    if (counts) best = std::max(best, token.score);
  }
  trie_ = ByteTrie(texts);
  unknown_score_ = worst - kUnknownPenalty;
  best_score_ = best;
  if (options_.arithmetic == UnigramArithmetic::kSentencePiece) {
    unknown_score_ = static_cast<float>(worst) - static_cast<float>(kUnknownPenalty);
  }
}

struct Unigram::Step {
  double sum = 0;
  int32_t id = -1;
  uint32_t begin = UINT32_MAX;  // UINT32_MAX: not reached yet
};

template <class Number>
std::vector<Unigram::Step> Unigram::best_steps(std::string_view piece) const {
  std::vector<Step> steps(piece.size() + 1);  // [i]: the best token that ends at byte i
  for (size_t at = 0; at < piece.size();) {
    const auto character =
        std::max<size_t>(1, static_cast<size_t>(utf8_sequence_length(piece.substr(at))));
    const auto so_far = static_cast<Number>(steps[at].sum);
    bool known = false;
    const auto offer = [&](size_t length, int32_t id, Number sum) {
      Step& step = steps[at + length];
      if (step.begin != UINT32_MAX && !(sum > static_cast<Number>(step.sum))) return;
      step = {sum, id, static_cast<uint32_t>(at)};
    };
    trie_.visit_prefixes(piece.substr(at), [&](size_t length, int32_t id) {
      const Entry& entry = entries_[static_cast<size_t>(id)];
      auto score = static_cast<Number>(entry.score);
      if (entry.kind == UnigramToken::Kind::kUserDefined) {
        // So good that nothing else is ever chosen where it fits.
        const auto bonus = static_cast<Number>(length) * static_cast<Number>(best_score_);
        score = static_cast<Number>(bonus - 0.1);
      }
      offer(length, id, score + so_far);
      known = known || length == character;
    });
    if (!known) offer(character, options_.unknown, static_cast<Number>(unknown_score_) + so_far);
    at += character;
  }
  return steps;
}

void Unigram::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (piece.size() >= UINT32_MAX) return;
  const std::vector<Step> steps = options_.arithmetic == UnigramArithmetic::kDouble
                                      ? best_steps<double>(piece)
                                      : best_steps<float>(piece);
  std::vector<size_t> ends;
  for (size_t end = piece.size(); end > 0; end = steps[end].begin) ends.push_back(end);

  size_t unknown_begin = 0;  // of the unknown characters not yet written
  bool unknown_waits = false;
  const auto write_unknown = [&](size_t end) {
    if (unknown_waits) append_unknown(piece.substr(unknown_begin, end - unknown_begin), ids);
    unknown_waits = false;
  };
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Step& step = steps[*end];
    if (step.id == options_.unknown) {
      if (!unknown_waits) unknown_begin = step.begin;
      unknown_waits = true;
      continue;
    }
    write_unknown(step.begin);
    ids.push_back(step.id);
  }
  write_unknown(piece.size());
}

// Several unknown characters in a row are one token, unless they can be spelled in bytes. (The
// unknown token itself, spelled out, comes here too.)
void Unigram::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  int32_t spelled = -1;
  trie_.visit_prefixes(text, [&](size_t length, int32_t id) {
    if (length == text.size()) spelled = id;
  });
  if (spelled >= 0) return ids.push_back(spelled);
  const auto has_token = [&](char byte) {
    return fallback_ids_[static_cast<unsigned char>(byte)] >= 0;
  };
  if (options_.byte_fallback && std::all_of(text.begin(), text.end(), has_token)) {
    for (const char byte : text) ids.push_back(fallback_ids_[static_cast<unsigned char>(byte)]);
  } else if (options_.unknown >= 0) {
    ids.push_back(options_.unknown);
  }
}

}  // namespace tinyvllm
