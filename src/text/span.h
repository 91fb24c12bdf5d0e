// Half-open byte range of a text.
#pragma once

#include <cstdint>
#include <string_view>

namespace tinyvllm {

struct Span {
  size_t begin = 0;
  size_t end = 0;

  bool empty() const { return begin == end; }
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
  bool operator==(const Span&) const = default;
};

}  // namespace tinyvllm
