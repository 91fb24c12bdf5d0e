// JSON at the speed of a trace: pieces are put down where they stay, and nothing is checked but
// that there is room, because there are twenty to a line. Names are plain literals; text from
// outside goes through JsonWriter first. One line at a time: a buffer has one end.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <string_view>

#include "telemetry/text_buffer.h"
#include "telemetry/trace_events.h"

namespace tinyvllm {

class JsonLine {
 public:
  explicit JsonLine(TextBuffer& out) : out_(out), end_(out.end()), limit_(out.limit()) {}
  ~JsonLine() { out_.set_end(end_); }
  JsonLine(const JsonLine&) = delete;
  JsonLine& operator=(const JsonLine&) = delete;

  JsonLine& open(std::string_view name = {}) {
    key(name);
    text("{");
    comma_ = false;
    return *this;
  }
  JsonLine& close() {
    text("}");
    comma_ = true;
    return *this;
  }
  template <class Value>
  JsonLine& field(std::string_view name, const Value& value) {
    key(name);
    put(value);
    return *this;
  }
  // "name":[put_one(values[0]), …]
  template <class List, class PutOne>
  JsonLine& list(std::string_view name, const List& values, PutOne&& put_one) {
    key(name);
    const char* before = "[";
    for (const auto& value : values) {
      text(before);
      put(put_one(value));
      before = ",";
    }
    text(values.empty() ? "[]" : "]");
    return *this;
  }
  JsonLine& raw(std::string_view name, std::string_view json) {
    key(name);
    text(json);
    return *this;
  }
  // A piece of JSON and a value, as they are: for lines that come by the hundred thousand.
  [[gnu::always_inline]] JsonLine& text(std::string_view piece) {
    make_room(piece.size());
    std::memcpy(end_, piece.data(), piece.size());
    end_ += piece.size();
    return *this;
  }
  JsonLine& value(const auto& value) {
    put(value);
    return *this;
  }

 private:
  void make_room(size_t bytes) {
    if (bytes > static_cast<size_t>(limit_ - end_)) [[unlikely]]
      more_room(bytes);
  }
  [[gnu::noinline]] void more_room(size_t bytes) {
    out_.set_end(end_);
    out_.grow(bytes);
    end_ = out_.end();
    limit_ = out_.limit();
  }
  void key(std::string_view name) {
    if (comma_) text(",");
    comma_ = true;
    if (!name.empty()) text("\"").text(name).text("\":");
  }
  void put(std::string_view string) { text("\"").text(string).text("\""); }
  void put(const char* string) { put(std::string_view(string)); }
  void put(bool value) { text(value ? "true" : "false"); }
  [[gnu::always_inline]] void put(std::integral auto number) {
    make_room(kLongestNumber);
    end_ = std::to_chars(end_, limit_, number).ptr;
  }
  // Counts of bytes and operations are whole; ratios need three decimals.
  void put(double number) {
    if (std::abs(number) < 9e15) {
      const auto whole = static_cast<int64_t>(number);
      if (static_cast<double>(whole) == number) return put(whole);
    }
    char digits[64];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, 3).ptr;
    text({digits, static_cast<size_t>(end - digits)});
  }
  [[gnu::always_inline]] void put(Micros time) {
    put(time.ns / 1000);
    const auto rest = static_cast<int>(time.ns % 1000);
    if (rest == 0) return;
    make_room(kLongestNumber);
    *end_++ = '.';
    for (const int unit : {100, 10, 1}) *end_++ = static_cast<char>('0' + rest / unit % 10);
  }

  static constexpr size_t kLongestNumber = 24;

  TextBuffer& out_;
  bool comma_ = false;
  char* end_;
  char* limit_;
};

}  // namespace tinyvllm
