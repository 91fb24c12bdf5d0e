// Replacing one string by another throughout a text, in linear time.
#pragma once

#include <string>
#include <string_view>

namespace tinyvllm {

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t found = from.empty() ? std::string::npos : text.find(from);
  if (found == std::string::npos) return;
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  size_t copied = 0;
  for (; found != std::string::npos; found = text.find(from, copied)) {
    out.append(text, copied, found - copied);
    out += to;
    copied = found + from.size();
  }
  out.append(text, copied, std::string::npos);
  text = std::move(out);
}

}  // namespace tinyvllm
