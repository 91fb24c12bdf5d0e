#include "text/token_texts.h"

#include <utility>

namespace tinyvllm {

Status TokenTexts::set(int64_t id, std::string_view text) {
  if (id < 0 || id >= kMaxTokens) {
    return error("token '", printable(text), "' has id ", id, "; ids are 0 to ", kMaxTokens - 1);
  }
  const auto index = static_cast<size_t>(id);
  if (index >= views_.size()) views_.resize(index + 1);
  views_[index] = text.data() == nullptr ? std::string_view("") : text;
  return Status();
}

void TokenTexts::pack() {
  size_t bytes = 1;  // so that the arena has an address
  for (const std::string_view view : views_) bytes += view.size();
  std::vector<char> arena;
  arena.reserve(bytes);
  for (std::string_view& view : views_) {
    if (view.data() == nullptr) continue;
    const char* const begin = arena.data() + arena.size();
    arena.insert(arena.end(), view.begin(), view.end());
    view = std::string_view(begin, view.size());
  }
  arena_ = std::move(arena);
}

}  // namespace tinyvllm
