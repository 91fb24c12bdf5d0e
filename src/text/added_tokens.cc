#include "text/added_tokens.h"

#include <utility>

namespace tinyvllm {

void AddedTokens::insert(AddedToken token) {
  if (token.content.empty()) return;
  uint32_t node = 0;
  for (const char c : token.content) {
    const auto byte = static_cast<unsigned char>(c);
    const auto [child, is_new] =
        trie_[node].children.try_emplace(byte, static_cast<uint32_t>(trie_.size()));
    node = child->second;
    if (is_new) trie_.emplace_back();
  }
  begins_[static_cast<unsigned char>(token.content[0])] = true;
  trie_[node].token = static_cast<int32_t>(tokens_.size());
  by_id_[token.id] = tokens_.size();
  tokens_.push_back(std::move(token));
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool parse_special) const {
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const int32_t found = longest_at(text, at);
    if (found < 0) {
      at += 1;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    const size_t end = at + token.content.size();
    if (parse_special || !token.special) {
      if (at > done) parts.push_back({{done, at}, -1});
      parts.push_back({{at, end}, token.id});
      done = end;
    }
    at = end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, -1});
  return parts;
}

bool AddedTokens::is_special(int32_t id) const {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && tokens_[found->second].special;
}

int32_t AddedTokens::longest_at(std::string_view text, size_t at) const {
  if (!begins_[static_cast<unsigned char>(text[at])]) return -1;
  int32_t found = -1;
  uint32_t node = 0;
  for (; at < text.size(); ++at) {
    const auto child = trie_[node].children.find(static_cast<unsigned char>(text[at]));
    if (child == trie_[node].children.end()) break;
    node = child->second;
    if (trie_[node].token >= 0) found = trie_[node].token;
  }
  return found;
}

}  // namespace tinyvllm
