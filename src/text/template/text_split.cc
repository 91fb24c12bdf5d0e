// Cutting strings: str.split, rsplit and splitlines. The pieces share the characters of the whole.
#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "text/template/text_ops.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

uint64_t cuts(int64_t limit) { return limit < 0 ? kNoLimit : static_cast<uint64_t>(limit); }

// Bytes of the white space character that ends at `end`; 0 if it is another.
uint32_t space_before(std::string_view text, uint32_t end) {
  uint32_t begin = end;
  do {
    begin -= 1;
  } while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
  return unicode::space_bytes(text, begin) != 0 ? end - begin : 0;
}

class Splitter {
 public:
  Splitter(Sandbox& sandbox, const Str& text) : sandbox_(sandbox), text_(text) {
    sandbox.charge_bytes(text.size);
  }

  std::vector<Value> by_space(uint64_t left) {
    uint32_t at = skip_space(0);
    while (at < text_.size) {
      if (left == 0) {
        add(at, text_.size);  // the rest as it is
        break;
      }
      const uint32_t begin = at;
      while (at < text_.size && unicode::space_bytes(text_.view(), at) == 0) {
        at += text_.char_bytes(at);
      }
      add(begin, at);
      left -= 1;
      at = skip_space(at);
    }
    return std::move(pieces_);
  }

  std::vector<Value> by_space_from_right(uint64_t left) {
    uint32_t end = text_.size - trailing_space();
    while (end > 0) {
      if (left == 0) {
        add(0, end);
        break;
      }
      uint32_t begin = end;
      while (begin > 0 && space_before(text_.view(), begin) == 0) begin = char_start(begin);
      add(begin, end);
      left -= 1;
      for (end = begin; end > 0;) {
        const uint32_t bytes = space_before(text_.view(), end);
        if (bytes == 0) break;
        end -= bytes;
      }
    }
    std::reverse(pieces_.begin(), pieces_.end());
    return std::move(pieces_);
  }

  std::vector<Value> by_separator(const Str& separator, uint64_t left) {
    uint32_t begin = 0;
    for (; left > 0; --left) {
      const size_t at = find_text(sandbox_, text_.view(), separator.view(), begin);
      if (at == std::string_view::npos) break;
      add(begin, static_cast<uint32_t>(at));
      begin = static_cast<uint32_t>(at) + separator.size;
    }
    add(begin, text_.size);
    return std::move(pieces_);
  }

  std::vector<Value> by_separator_from_right(const Str& separator, uint64_t left) {
    uint32_t end = text_.size;
    for (; left > 0 && end >= separator.size; --left) {
      const size_t at =
          find_text_backwards(sandbox_, text_.view(), separator.view(), end - separator.size);
      if (at == std::string_view::npos) break;
      add(static_cast<uint32_t>(at) + separator.size, end);
      end = static_cast<uint32_t>(at);
    }
    add(0, end);
    std::reverse(pieces_.begin(), pieces_.end());
    return std::move(pieces_);
  }

  std::vector<Value> by_lines(bool keep_ends) {
    uint32_t begin = 0;
    for (size_t at = 0; at < text_.size;) {
      const auto end = static_cast<uint32_t>(at);
      const char32_t c = utf8_next(text_.view(), at);
      if (!unicode::is_line_break(c)) continue;
      if (c == '\r' && at < text_.size && text_.data[at] == '\n') at += 1;
      add(begin, keep_ends ? static_cast<uint32_t>(at) : end);
      begin = static_cast<uint32_t>(at);
    }
    if (begin < text_.size) add(begin, text_.size);
    return std::move(pieces_);
  }

 private:
  void add(uint32_t begin, uint32_t end) {
    sandbox_.charge(1);
    pieces_.push_back(Value(substr(sandbox_.heap(), text_, begin, end)));
  }

  uint32_t skip_space(uint32_t at) const {
    while (const size_t bytes = unicode::space_bytes(text_.view(), at)) {
      at += static_cast<uint32_t>(bytes);
    }
    return at;
  }

  uint32_t trailing_space() const {
    uint32_t end = text_.size;
    while (end > 0) {
      const uint32_t bytes = space_before(text_.view(), end);
      if (bytes == 0) break;
      end -= bytes;
    }
    return text_.size - end;
  }

  // Where the character begins that ends at `end`.
  uint32_t char_start(uint32_t end) const {
    do {
      end -= 1;
    } while ((static_cast<unsigned char>(text_.data[end]) & 0xC0) == 0x80);
    return end;
  }

  Sandbox& sandbox_;
  const Str& text_;
  std::vector<Value> pieces_;
};

void check_separator(const Str* separator) {
  if (separator != nullptr && separator->size == 0) fail("split: the separator is empty");
}

}  // namespace

std::vector<Value> split(Sandbox& sandbox, const Str& text, const Str* separator, int64_t limit) {
  check_separator(separator);
  Splitter splitter(sandbox, text);
  if (separator == nullptr) return splitter.by_space(cuts(limit));
  return splitter.by_separator(*separator, cuts(limit));
}

std::vector<Value> split_right(Sandbox& sandbox, const Str& text, const Str* separator,
                               int64_t limit) {
  check_separator(separator);
  Splitter splitter(sandbox, text);
  if (separator == nullptr) return splitter.by_space_from_right(cuts(limit));
  return splitter.by_separator_from_right(*separator, cuts(limit));
}

std::vector<Value> split_lines(Sandbox& sandbox, const Str& text, bool keep_ends) {
  return Splitter(sandbox, text).by_lines(keep_ends);
}

}  // namespace tinyvllm::jinja
