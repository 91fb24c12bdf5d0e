#include "text/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode.h"

namespace tinyvllm {
namespace {

bool touches_word(std::string_view text, const Span& span) {
  const CharacterTable& table = CharacterTable::get();
  if (span.begin > 0 && table[utf8_previous(text, span.begin)].is_word()) return true;
  size_t after = span.end;
  return after < text.size() && table[utf8_next(text, after)].is_word();
}

// Begin of the white space that ends at `end`, but not before `limit`.
size_t space_before(std::string_view text, size_t end, size_t limit) {
  while (end > limit && is_space(utf8_previous(text, end))) {
    end -= 1;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) end -= 1;
  }
  return end;
}

size_t space_after(std::string_view text, size_t begin) {
  for (size_t at = begin; at < text.size() && is_space(utf8_next(text, at));) begin = at;
  return begin;
}

}  // namespace

void AddedTokens::insert(const AddedToken& token, std::string_view pattern) {
  if (token.special) special_.insert(token.content);
  if (!pattern.empty() && is_utf8(pattern)) {
    const auto index = static_cast<int32_t>(tokens_.size());
    (token.normalized ? normalized_ : plain_).insert(pattern, index);
  }
  tokens_.push_back(token);
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool normalized,
                                                  bool parse_special) const {
  const TokenMatcher& matcher = normalized ? normalized_ : plain_;
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = matcher.empty() ? text.size() : 0; at < text.size();) {
    if (!matcher.begins(text[at])) {
      at += 1;
      continue;
    }
    const TokenMatcher::Match match = matcher.longest_at(text, at);
    if (match.length == 0) {
      at += 1;
      continue;
    }
    // A token that is passed over still hides shorter ones inside it.
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    Span span = {at, at + match.length};
    at = span.end;
    if (!parse_special && is_special(token.content)) continue;
    if (token.single_word && touches_word(text, span)) continue;
    if (token.lstrip) span.begin = space_before(text, span.begin, done);
    if (token.rstrip) span.end = space_after(text, span.end);
    if (span.begin > done) parts.push_back({{done, span.begin}, -1});
    parts.push_back({span, token.id});
    done = span.end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, -1});
  return parts;
}

}  // namespace tinyvllm
