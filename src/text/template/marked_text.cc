#include "text/template/marked_text.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/utf8.h"

namespace tinyvllm::jinja {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

const uint32_t* copy_flips(Heap& heap, const uint32_t* first, const uint32_t* last, uint32_t base) {
  uint32_t* flips = heap.array<uint32_t>(static_cast<size_t>(last - first));
  std::transform(first, last, flips, [base](uint32_t offset) { return offset - base; });
  return flips;
}

}  // namespace

Origin Str::origin_at(uint32_t offset) const {
  const auto passed = std::upper_bound(flips, flips + num_flips, offset) - flips;
  if (passed % 2 == 0) return origin;
  return origin == Origin::kTemplate ? Origin::kMessage : Origin::kTemplate;
}

uint32_t Str::offset_of(uint32_t index) const {
  if (ascii()) return index;
  if (index == chars) return size;
  uint32_t offset = 0;
  for (uint32_t seen = 0; seen < index; ++seen) offset += char_bytes(offset);
  return offset;
}

uint32_t Str::char_bytes(uint32_t offset) const {
  uint32_t end = offset + 1;
  while (end < size && is_continuation(data[end])) end += 1;
  return end - offset;
}

uint32_t count_chars(std::string_view text) {
  return static_cast<uint32_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

const Str* borrow_str(Heap& heap, std::string_view text, Origin origin) {
  return heap.make<Str>(
      Str{text.data(), static_cast<uint32_t>(text.size()), count_chars(text), origin});
}

const Str* make_str(Heap& heap, std::string_view text, Origin origin) {
  return borrow_str(heap, heap.copy(text), origin);
}

const Str* substr(Heap& heap, const Str& text, uint32_t begin, uint32_t end) {
  if (begin == 0 && end == text.size) return &text;
  const std::string_view bytes = text.view().substr(begin, end - begin);
  Str* part = heap.make<Str>(Str{bytes.data(), end - begin, 0, text.origin, text.markup});
  part->chars = text.ascii() ? part->size : count_chars(bytes);
  if (text.uniform()) return part;
  part->origin = text.origin_at(begin);
  const uint32_t* first = std::upper_bound(text.flips, text.flips + text.num_flips, begin);
  const uint32_t* last = std::lower_bound(first, text.flips + text.num_flips, end);
  part->num_flips = static_cast<uint32_t>(last - first);
  if (part->num_flips != 0) part->flips = copy_flips(heap, first, last, begin);
  return part;
}

const Str* concat(Heap& heap, const Str& left, const Str& right) {
  if (left.uniform() && right.uniform() && left.origin == right.origin) {
    const size_t size = size_t{left.size} + right.size;
    heap.require(size);
    char* bytes = heap.array<char>(size);
    if (left.size != 0) std::memcpy(bytes, left.data, left.size);
    if (right.size != 0) std::memcpy(bytes + left.size, right.data, right.size);
    return heap.make<Str>(
        Str{bytes, static_cast<uint32_t>(size), left.chars + right.chars, left.origin});
  }
  TextBuilder both(heap);
  both.append(left);
  both.append(right);
  return both.finish();
}

const Str* with_markup(Heap& heap, const Str& text, bool markup) {
  if (text.markup == markup) return &text;
  Str* copy = heap.make<Str>(text);
  copy->markup = markup;
  return copy;
}

void TextBuilder::append(std::string_view text, Origin origin) {
  if (text.empty()) return;
  heap_->require(bytes_.size() + text.size());
  if (bytes_.empty()) {
    first_ = origin;
  } else if (origin != last_) {
    flips_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  last_ = origin;
  bytes_.append(text);
}

void TextBuilder::append(const Str& text, uint32_t begin, uint32_t end) {
  if (text.uniform()) return append(text.view().substr(begin, end - begin), text.origin);
  while (begin < end) {
    const uint32_t* flip = std::upper_bound(text.flips, text.flips + text.num_flips, begin);
    const uint32_t stop = flip == text.flips + text.num_flips ? end : std::min(end, *flip);
    append(text.view().substr(begin, stop - begin), text.origin_at(begin));
    begin = stop;
  }
}

void TextBuilder::append(char32_t code_point, Origin origin) {
  std::string character;
  utf8_append(character, code_point);
  append(character, origin);
}

void TextBuilder::pad(size_t count, std::string_view fill, Origin origin) {
  if (count > std::numeric_limits<uint32_t>::max()) heap_->require(count);
  heap_->require(count * fill.size());
  for (size_t i = 0; i < count; ++i) append(fill, origin);
}

const Str* TextBuilder::finish(bool markup) {
  Str* text = heap_->make<Str>();
  text->data = heap_->copy(bytes_).data();
  text->size = static_cast<uint32_t>(bytes_.size());
  text->chars = count_chars(bytes_);
  text->origin = first_;
  text->markup = markup;
  text->num_flips = static_cast<uint32_t>(flips_.size());
  if (!flips_.empty()) {
    text->flips = copy_flips(*heap_, flips_.data(), flips_.data() + flips_.size(), 0);
  }
  return text;
}

}  // namespace tinyvllm::jinja
