#include "text/template/text_ops.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/utf8.h"
#include "text/template/html.h"
#include "text/template/print.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

constexpr Origin kTemplate = Origin::kTemplate;

void append(TextBuilder& out, const unicode::Cased& cased, Origin origin) {
  for (int i = 0; i < cased.count; ++i) out.append(cased.chars[i], origin);
}

unicode::Cased changed(std::string_view text, size_t at, char32_t c, Case to, bool word_start) {
  switch (to) {
    case Case::kUpper:
      return unicode::to_upper(c);
    case Case::kLower:
      return unicode::to_lower(text, at, c);
    case Case::kFold:
      return unicode::fold(c);
    case Case::kSwap:
      if (unicode::is_upper(c)) return unicode::to_lower(text, at, c);
      if (unicode::is_lower(c)) return unicode::to_upper(c);
      return {{c}, 1};
    default:
      return word_start ? unicode::to_title(c) : unicode::to_lower(text, at, c);
  }
}

// All ASCII and of one origin: the usual case, a byte at a time.
const Str* change_ascii(Sandbox& sandbox, const Str& text, Case to) {
  std::string bytes(text.view());
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto upper = [](char c) { return c >= 'a' && c <= 'z'; };
  bool word_start = true;
  for (char& c : bytes) {
    const bool up = to == Case::kUpper || to == Case::kSwap ||
                    ((to == Case::kTitle || to == Case::kCapitalize) && word_start);
    const bool down = to == Case::kLower || to == Case::kSwap || to == Case::kFold ||
                      ((to == Case::kTitle || to == Case::kCapitalize) && !word_start);
    word_start = to == Case::kTitle && !lower(c) && !upper(c);
    if ((up && upper(c)) || (down && lower(c))) c = static_cast<char>(c ^ 0x20);
  }
  const Str* result = make_str(sandbox.heap(), bytes, text.origin);
  return with_markup(sandbox.heap(), *result, text.markup);
}

// Whether the character at `at` of `text`, `bytes` long, is to be stripped.
bool in_set(std::string_view character, const Str* chars) {
  if (chars == nullptr) return unicode::space_bytes(character, 0) != 0;
  return chars->view().find(character) != std::string_view::npos;
}

}  // namespace

Value slice_text(Sandbox& sandbox, const Str& text, const SliceRange& slice) {
  Heap& heap = sandbox.heap();
  sandbox.charge_bytes(text.ascii() ? static_cast<size_t>(slice.count) : text.size);
  if (slice.count == 0) return Value(substr(heap, text, 0, 0));
  if (slice.step == 1) {
    const uint32_t begin = text.offset_of(static_cast<uint32_t>(slice.start));
    const uint32_t end = text.offset_of(static_cast<uint32_t>(slice.start + slice.count));
    return Value(substr(heap, text, begin, end));
  }
  std::vector<uint32_t> offsets;  // of every character, when they are not all one byte
  for (uint32_t at = 0; !text.ascii() && at < text.size; at += text.char_bytes(at)) {
    offsets.push_back(at);
  }
  TextBuilder out(heap);
  for (int64_t i = 0; i < slice.count; ++i) {
    const auto index = static_cast<uint32_t>(slice.start + i * slice.step);
    const uint32_t begin = text.ascii() ? index : offsets[index];
    out.append(text, begin, begin + text.char_bytes(begin));
  }
  return Value(out.finish(text.markup));
}

const Str* change_case(Sandbox& sandbox, const Str& text, Case to) {
  sandbox.charge_bytes(size_t{text.size} * 4);
  if (text.ascii() && text.uniform()) return change_ascii(sandbox, text, to);
  TextBuilder out(sandbox.heap());
  bool word_start = true;
  for (size_t at = 0; at < text.size;) {
    const size_t begin = at;
    const char32_t c = utf8_next(text.view(), at);
    append(out, changed(text.view(), begin, c, to, word_start),
           text.origin_at(static_cast<uint32_t>(begin)));
    word_start = to == Case::kTitle && !unicode::is_cased(c);
  }
  return out.finish(text.markup);
}

bool has_only_case(Sandbox& sandbox, const Str& text, bool upper) {
  sandbox.charge_bytes(size_t{text.size} * 4);
  bool any = false;
  for (size_t at = 0; at < text.size;) {
    const char32_t c = utf8_next(text.view(), at);
    if (unicode::is_title(c) || (upper ? unicode::is_lower(c) : unicode::is_upper(c))) return false;
    any |= upper ? unicode::is_upper(c) : unicode::is_lower(c);
  }
  return any;
}

const Str* strip(Sandbox& sandbox, const Str& text, const Str* chars, bool left, bool right) {
  const std::string_view bytes = text.view();
  uint32_t begin = 0;
  while (left && begin < text.size) {
    const uint32_t length = text.char_bytes(begin);
    if (!in_set(bytes.substr(begin, length), chars)) break;
    begin += length;
  }
  uint32_t end = text.size;
  while (right && end > begin) {
    uint32_t last = end - 1;
    while ((static_cast<unsigned char>(bytes[last]) & 0xC0) == 0x80) last -= 1;
    if (!in_set(bytes.substr(last, end - last), chars)) break;
    end = last;
  }
  const size_t taken = size_t{text.size} - (end - begin);
  sandbox.charge_bytes(taken * (chars == nullptr ? 1 : chars->size));
  return substr(sandbox.heap(), text, begin, end);
}

const Str* replace(Sandbox& sandbox, const Str& text, const Str& from, const Str& to,
                   int64_t limit) {
  const uint64_t most =
      limit < 0 ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(limit);
  TextBuilder out(sandbox.heap());
  uint64_t done = 0;
  uint32_t kept = 0;
  const auto put = [&](uint32_t at, uint32_t resume) {
    sandbox.charge_bytes(to.size);
    out.append(text, kept, at);
    out.append(to);
    kept = resume;
    done += 1;
  };
  if (from.size == 0) {  // before every character, and at the end
    for (uint32_t at = 0; done < most; at += text.char_bytes(at)) {
      put(at, at);
      if (at == text.size) break;
    }
  } else {
    while (done < most) {
      const size_t at = find_text(sandbox, text.view(), from.view(), kept);
      if (at == std::string_view::npos) break;
      put(static_cast<uint32_t>(at), static_cast<uint32_t>(at) + from.size);
    }
  }
  if (done == 0) return &text;
  out.append(text, kept, text.size);
  return out.finish();
}

size_t find_text(Sandbox& sandbox, std::string_view text, std::string_view what, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (what.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, what.data(), what.size());
  const size_t at = found == nullptr
                        ? std::string_view::npos
                        : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  sandbox.charge_bytes(std::min(at, text.size()) - from + what.size());
  return at;
}

size_t find_text_backwards(Sandbox& sandbox, std::string_view text, std::string_view what,
                           size_t from) {
  const size_t at = text.rfind(what, from);
  const size_t walked = std::min(from, text.size()) - (at == std::string_view::npos ? 0 : at);
  sandbox.charge_bytes(walked * (what.size() + 1));
  return at;
}

const Str* join(Sandbox& sandbox, const Str& separator, const std::vector<Value>& items) {
  TextBuilder out(sandbox.heap());
  for (size_t i = 0; i < items.size(); ++i) {
    // Markup makes text of anything, and escapes it.
    const Str* item = separator.markup ? escape_html(sandbox, *to_text(sandbox, items[i]))
                                       : &to_str(items[i], str_cat("join: item ", i));
    if (i != 0) out.append(separator);
    out.append(*item);
    sandbox.charge_bytes(size_t{separator.size} + item->size);
  }
  return out.finish(separator.markup);
}

const Str* pad(Sandbox& sandbox, const Str& text, int64_t width, const Str* fill, Align align) {
  if (fill != nullptr && fill->chars != 1) fail("the fill character must be one character");
  if (width <= text.chars) return &text;
  const auto missing = static_cast<uint64_t>(width - text.chars);
  sandbox.heap().require(missing);
  sandbox.charge_bytes(missing);
  const uint64_t left = align == Align::kLeft    ? 0
                        : align == Align::kRight ? missing
                                                 : missing / 2 + (missing & width & 1);
  const std::string_view filler = fill == nullptr ? " " : fill->view();
  const Origin origin = fill == nullptr ? kTemplate : fill->origin;
  TextBuilder out(sandbox.heap());
  out.pad(left, filler, origin);
  out.append(text);
  out.pad(missing - left, filler, origin);
  return out.finish(text.markup);
}

const Str* zero_fill(Sandbox& sandbox, const Str& text, int64_t width) {
  if (width <= text.chars) return &text;
  const auto missing = static_cast<uint64_t>(width - text.chars);
  sandbox.heap().require(missing);
  sandbox.charge_bytes(missing);
  const uint32_t sign = text.size != 0 && (text.data[0] == '+' || text.data[0] == '-') ? 1 : 0;
  TextBuilder out(sandbox.heap());
  out.append(text, 0, sign);
  out.pad(missing, "0", kTemplate);
  out.append(text, sign, text.size);
  return out.finish(text.markup);
}

const Str* expand_tabs(Sandbox& sandbox, const Str& text, int64_t tab_size) {
  TextBuilder out(sandbox.heap());
  int64_t column = 0;
  for (uint32_t at = 0; at < text.size; at += text.char_bytes(at)) {
    sandbox.charge(1);
    const char c = text.data[at];
    if (c != '\t') {
      out.append(text, at, at + text.char_bytes(at));
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    } else if (tab_size > 0) {
      const int64_t spaces = tab_size - column % tab_size;
      sandbox.heap().require(static_cast<uint64_t>(spaces));
      sandbox.charge_bytes(static_cast<uint64_t>(spaces));
      out.pad(static_cast<uint64_t>(spaces), " ", text.origin_at(at));
      column += spaces;
    }
  }
  return out.finish(text.markup);
}

}  // namespace tinyvllm::jinja
