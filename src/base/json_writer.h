// Writes JSON, one call per thing, commas and escapes taken care of. Reading JSON is simdjson's
// work.
//
//   JsonWriter json;
//   json.begin_object().field("ids", ids).field("text", text).end_object();
//   puts(json.str().c_str());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace tinyvllm {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);  // bytes that are not UTF-8 become U+FFFD
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag) { return raw(flag ? "true" : "false"); }
  JsonWriter& value(double number);  // as few digits as read back equal; NaN and infinities as null
  JsonWriter& null() { return raw("null"); }
  template <class Integer>
  requires std::is_integral_v<Integer> JsonWriter& value(Integer number) {
    return raw(std::to_string(number));
  }
  template <class List>
  requires(!std::is_convertible_v<List, std::string_view> && requires(const List& list) {
    list.begin() != list.end();
  }) JsonWriter& value(const List& list) {
    begin_array();
    for (const auto& item : list) value(item);
    return end_array();
  }
  template <class Value>
  JsonWriter& field(std::string_view name, const Value& v) {
    key(name);
    return value(v);
  }

  const std::string& str() const { return out_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view text);
  void separate();

  std::string out_;
  bool need_comma_ = false;
};

}  // namespace tinyvllm
