// JSON at the speed of a trace: appends to a string and neither checks nor copies. Small pieces are
// gathered in a buffer of its own, because there are twenty to a line. Names are plain literals;
// text from outside goes through JsonWriter first.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>

#include "telemetry/trace_events.h"

namespace tinyvllm {

class JsonLine {
 public:
  explicit JsonLine(std::string& out) : out_(out) {}
  ~JsonLine() { flush(); }
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
  JsonLine& text(std::string_view piece) {
    if (piece.size() > static_cast<size_t>(buffer_ + sizeof buffer_ - end_)) {
      flush();
      if (piece.size() > sizeof buffer_) {
        out_ += piece;
        return *this;
      }
    }
    std::memcpy(end_, piece.data(), piece.size());
    end_ += piece.size();
    return *this;
  }
  JsonLine& value(const auto& value) {
    put(value);
    return *this;
  }

 private:
  void flush() {
    out_.append(buffer_, end_);
    end_ = buffer_;
  }
  void key(std::string_view name) {
    if (comma_) text(",");
    comma_ = true;
    if (!name.empty()) text("\"").text(name).text("\":");
  }
  void put(std::string_view string) { text("\"").text(string).text("\""); }
  void put(const char* string) { put(std::string_view(string)); }
  void put(bool value) { text(value ? "true" : "false"); }
  void put(std::integral auto number) {
    if (buffer_ + sizeof buffer_ - end_ < 24) flush();
    end_ = std::to_chars(end_, buffer_ + sizeof buffer_, number).ptr;
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
  void put(Micros time) {
    put(time.ns / 1000);
    const auto rest = static_cast<int>(time.ns % 1000);
    if (rest == 0) return;
    const char decimals[] = {'.', static_cast<char>('0' + rest / 100),
                             static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
    text({decimals, sizeof decimals});
  }

  std::string& out_;
  bool comma_ = false;
  char* end_ = buffer_;
  char buffer_[1024];
};

}  // namespace tinyvllm
