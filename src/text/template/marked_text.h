// Text in which every character knows where it came from: written in the template, or brought in by
// the conversation. The tokenizer lets only the template's characters become control tokens, so the
// marks must survive whatever a template does to a string.
//
// A Str is immutable UTF-8 in a Heap. Its marks are the origin of the first byte and the offsets at
// which the origin changes; nearly every string has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/sandbox.h"

namespace tinyvllm::jinja {

enum class Origin : uint8_t { kTemplate, kMessage };

// What is computed from both belongs to the message: only purely template text is trusted.
inline Origin operator|(Origin a, Origin b) { return a == Origin::kMessage ? a : b; }

struct Str {
  const char* data = nullptr;
  uint32_t size = 0;   // bytes
  uint32_t chars = 0;  // code points
  Origin origin = Origin::kTemplate;
  bool markup = false;  // declared safe for HTML: joining it with other text escapes that text
  uint32_t num_flips = 0;
  const uint32_t* flips = nullptr;  // ascending, in (0, size)

  std::string_view view() const { return {data, size}; }
  bool ascii() const { return chars == size; }
  bool uniform() const { return num_flips == 0; }
  Origin origin_at(uint32_t offset) const;
  Origin any_origin() const { return uniform() ? origin : Origin::kMessage; }

  // Byte offset of a code point; `index` may be `chars`, the end.
  uint32_t offset_of(uint32_t index) const;
  // Bytes of the code point at a byte offset.
  uint32_t char_bytes(uint32_t offset) const;
};

uint32_t count_chars(std::string_view text);

const Str* make_str(Heap& heap, std::string_view text, Origin origin);  // copies
const Str* borrow_str(Heap& heap, std::string_view text,
                      Origin origin);  // `text` outlives the heap
const Str* substr(Heap& heap, const Str& text, uint32_t begin, uint32_t end);
const Str* concat(Heap& heap, const Str& left, const Str& right);
const Str* with_markup(Heap& heap, const Str& text, bool markup);

// Collects text and its marks, then turns into a Str. Grows outside the heap but within its limit.
class TextBuilder {
 public:
  explicit TextBuilder(Heap& heap) : heap_(&heap) {}

  void append(std::string_view text, Origin origin);
  void append(const Str& text) { append(text, 0, text.size); }
  void append(const Str& text, uint32_t begin, uint32_t end);
  void append(char32_t code_point, Origin origin);
  void pad(size_t count, std::string_view fill, Origin origin);

  size_t size() const { return bytes_.size(); }
  std::string_view view() const { return bytes_; }
  const Str* finish(bool markup = false);

  // For the rendered text itself: the bytes, and the offsets where the origin changes.
  std::string take_bytes() { return std::move(bytes_); }
  Origin first_origin() const { return first_; }
  const std::vector<uint32_t>& flips() const { return flips_; }

 private:
  Heap* heap_;
  std::string bytes_;
  Origin first_ = Origin::kTemplate;
  Origin last_ = Origin::kTemplate;
  std::vector<uint32_t> flips_;
};

}  // namespace tinyvllm::jinja
