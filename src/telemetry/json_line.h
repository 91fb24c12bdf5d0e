// JSON at the speed of a trace: appends to a string and neither checks nor copies. Names are plain
// literals; text from outside goes through JsonWriter first.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include "telemetry/trace_events.h"

namespace tinyvllm {

class JsonLine {
 public:
  explicit JsonLine(std::string& out) : out_(out) {}

  JsonLine& open(std::string_view name = {}) {
    key(name);
    out_ += '{';
    comma_ = false;
    return *this;
  }
  JsonLine& close() {
    out_ += '}';
    comma_ = true;
    return *this;
  }
  template <class Value>
  JsonLine& field(std::string_view name, const Value& value) {
    key(name);
    put(value);
    return *this;
  }
  // "name":[put(values[0]), …]
  template <class List, class Put>
  JsonLine& list(std::string_view name, const List& values, Put&& put_one) {
    key(name);
    out_ += '[';
    bool first = true;
    for (const auto& value : values) {
      if (!first) out_ += ',';
      first = false;
      put(put_one(value));
    }
    out_ += ']';
    return *this;
  }
  JsonLine& raw(std::string_view name, std::string_view json) {
    key(name);
    out_ += json;
    return *this;
  }

 private:
  void key(std::string_view name) {
    if (comma_) out_ += ',';
    comma_ = true;
    if (name.empty()) return;
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }
  void put(std::string_view text) {
    out_ += '"';
    out_ += text;
    out_ += '"';
  }
  void put(const char* text) { put(std::string_view(text)); }
  void put(bool value) { out_ += value ? "true" : "false"; }
  void put(std::integral auto number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out_.append(digits, end);
  }
  // Counts of bytes and operations are whole; ratios need three decimals.
  void put(double number) {
    if (number == std::floor(number) && std::abs(number) < 9e15) {
      put(static_cast<int64_t>(number));
      return;
    }
    char digits[64];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, number, std::chars_format::fixed, 3).ptr;
    out_.append(digits, end);
  }
  void put(Micros time) {
    put(time.ns / 1000);
    const auto rest = static_cast<int>(time.ns % 1000);
    if (rest == 0) return;
    const char decimals[] = {'.', static_cast<char>('0' + rest / 100),
                             static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
    out_.append(decimals, sizeof decimals);
  }

  std::string& out_;
  bool comma_ = false;
};

}  // namespace tinyvllm
