#include "text/added_tokens.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

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

bool AddedTokens::Rules::allow(const Span& span) const {
  return trusted == nullptr ? parse_special : span.end <= trusted_end(span.begin);
}

size_t AddedTokens::Rules::trusted_end(size_t at) const {
  const auto after = std::upper_bound(trusted->spans.begin(), trusted->spans.end(), at + offset,
                                      [](size_t place, const Span& s) { return place < s.begin; });
  if (after == trusted->spans.begin()) return at;
  return std::max(at + offset, std::prev(after)->end) - offset;
}

size_t AddedTokens::Rules::next_trusted(size_t at) const {
  const auto after = std::upper_bound(trusted->spans.begin(), trusted->spans.end(), at + offset,
                                      [](size_t place, const Span& s) { return place < s.begin; });
  return after == trusted->spans.end() ? SIZE_MAX : after->begin - offset;
}

bool AddedTokens::is_control(const AddedToken& token, const Rules& rules) const {
  if (is_special(token.content)) return true;
  const auto* words = rules.trusted == nullptr ? nullptr : rules.trusted->control_words;
  return words != nullptr && words->contains(token.content);
}

// The longest token that may begin at `at`; with none, where to look next.
TokenMatcher::Match AddedTokens::match_at(const TokenMatcher& matcher, std::string_view text,
                                          size_t at, const Rules& rules, size_t& resume) const {
  const TokenMatcher::Match match = matcher.longest_at(text, at);
  resume = at + 1;
  if (match.length == 0) return {};
  const Span span = {at, at + match.length};
  const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
  if (!is_control(token, rules) || rules.allow(span)) return match;
  // A token that is passed over still hides shorter ones inside it; but what reaches out of trusted
  // text, or into it, must not hide what is trusted.
  resume = span.end;
  if (rules.trusted == nullptr) return {};
  const size_t end = rules.trusted_end(at);
  if (end > at) {
    resume = at + 1;
    return matcher.longest_at(text.substr(0, end), at);
  }
  resume = std::min(span.end, rules.next_trusted(at));
  return {};
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool normalized,
                                                  const Rules& rules) const {
  const TokenMatcher& matcher = normalized ? normalized_ : plain_;
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = matcher.empty() ? text.size() : 0; at < text.size();) {
    if (!matcher.begins(text[at])) {
      at += 1;
      continue;
    }
    size_t resume = 0;
    const TokenMatcher::Match match = match_at(matcher, text, at, rules, resume);
    if (match.length == 0) {
      at = resume;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    Span span = {at, at + match.length};
    at = span.end;
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
