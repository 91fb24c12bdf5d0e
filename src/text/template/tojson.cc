// The filter `tojson`, as Hugging Face defines it for chat templates: json.dumps with its options,
// and no escaping for HTML.
#include <cmath>
#include <cstdio>

#include "base/utf8.h"
#include "text/template/iterate.h"
#include "text/template/native.h"
#include "text/template/numbers.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace tinyvllm::jinja {
namespace {

struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  const Str* indent = nullptr;  // null: all on one line
  const Str* item_separator = nullptr;
  const Str* key_separator = nullptr;
};

class JsonPrinter {
 public:
  JsonPrinter(Sandbox& sandbox, const JsonStyle& style)
      : sandbox_(sandbox), style_(style), out_(sandbox.heap()) {}

  Value run(const Value& value) {
    print_value(value, 1);
    return Value(out_.finish());
  }

 private:
  void print_value(const Value& value, int level) {
    const Nesting nesting(sandbox_);
    sandbox_.charge(1);
    switch (value.kind) {
      case Kind::kNone:
        return out_.append("null", value.origin);
      case Kind::kBool:
        return out_.append(value.boolean ? "true" : "false", value.origin);
      case Kind::kInt:
      case Kind::kFloat:
        return out_.append(number_text(value), value.origin);
      case Kind::kStr:
        return print_string(*value.str);
      case Kind::kList:
      case Kind::kTuple:
        return print_list(value, level);
      case Kind::kDict:
        return print_dict(value, level);
      default:
        fail_type("tojson: no JSON for this value", value);
    }
  }

  static std::string number_text(const Value& value) {
    if (value.is_int()) return std::to_string(value.as_int());
    if (std::isnan(value.number)) return "NaN";
    if (std::isinf(value.number)) return value.number < 0 ? "-Infinity" : "Infinity";
    return float_repr(value.number);
  }

  void print_list(const Value& value, int level) {
    out_.append("[", value.origin);
    for (uint32_t i = 0; i < value.list->size; ++i) {
      separate(i == 0, level, value.origin);
      print_value(value.list->items[i], level + 1);
    }
    if (value.list->size != 0) new_line(level - 1, value.origin);
    out_.append("]", value.origin);
  }

  void print_dict(const Value& value, int level) {
    std::vector<Value> keys;
    for (const Dict::Entry& entry : *value.dict) keys.push_back(entry.key);
    if (style_.sort_keys) {
      std::stable_sort(keys.begin(), keys.end(),
                       [&](const Value& a, const Value& b) { return less(sandbox_, a, b); });
    }
    out_.append("{", value.origin);
    for (const Value& key : keys) {
      separate(&key == keys.data(), level, value.origin);
      print_key(key);
      punctuate(*style_.key_separator, value.origin);
      print_value(*value.dict->find(key), level + 1);
    }
    if (!keys.empty()) new_line(level - 1, value.origin);
    out_.append("}", value.origin);
  }

  void print_key(const Value& key) {
    switch (key.kind) {
      case Kind::kStr:
        return print_string(*key.str);
      case Kind::kNone:
        return out_.append("\"null\"", key.origin);
      case Kind::kBool:
        return out_.append(key.boolean ? "\"true\"" : "\"false\"", key.origin);
      case Kind::kInt:
      case Kind::kFloat:
        return out_.append(str_cat('"', number_text(key), '"'), key.origin);
      default:
        fail("tojson: a key of type '", type_name(key), "'");
    }
  }

  void separate(bool first, int level, Origin origin) {
    if (!first) punctuate(*style_.item_separator, origin);
    new_line(level, origin);
  }

  void new_line(int level, Origin origin) {
    if (style_.indent == nullptr) return;
    sandbox_.charge_bytes(style_.indent->size * static_cast<size_t>(level));
    out_.append("\n", origin);
    for (int i = 0; i < level; ++i) punctuate(*style_.indent, origin);
  }

  // What stands between the parts of a message's object is the message's, whoever chose it.
  void punctuate(const Str& text, Origin origin) {
    out_.append(text.view(), text.any_origin() | origin);
  }

  void print_string(const Str& text) {
    sandbox_.charge_bytes(text.size);
    out_.append("\"", text.any_origin());
    uint32_t kept = 0;
    for (size_t at = 0; at < text.size;) {
      const auto begin = static_cast<uint32_t>(at);
      const char32_t c = utf8_next(text.view(), at);
      const bool plain = c >= 0x20 && c != '"' && c != '\\' && (!style_.ascii || c < 0x7F);
      if (plain) continue;
      out_.append(text, kept, begin);
      kept = static_cast<uint32_t>(at);
      print_escape(c, text.origin_at(begin));
    }
    out_.append(text, kept, text.size);
    out_.append("\"", text.any_origin());
  }

  void print_escape(char32_t c, Origin origin) {
    constexpr std::string_view kNamed = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    if (c < 0x80) {
      if (const size_t named = kNamed.find(static_cast<char>(c)); named != kNamed.npos) {
        const char escape[] = {'\\', kLetters[named]};
        return out_.append({escape, 2}, origin);
      }
    }
    char code[16];
    if (c < 0x10000) {
      std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(c));
    } else {
      const unsigned above = static_cast<unsigned>(c) - 0x10000;
      std::snprintf(code, sizeof(code), "\\u%04x\\u%04x", 0xD800 + (above >> 10),
                    0xDC00 + (above & 0x3FF));
    }
    out_.append(code, origin);
  }

  Sandbox& sandbox_;
  const JsonStyle& style_;
  TextBuilder out_;
};

Value tojson(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
  Heap& heap = sandbox.heap();
  JsonStyle style;
  style.ascii = bound.has(0) && is_true(sandbox, bound[0]);
  style.sort_keys = bound.has(3) && is_true(sandbox, bound[3]);
  if (bound.given(1) && !self.is(Kind::kStr)) {  // of a string Python looks no further
    if (bound[1].is(Kind::kStr)) {
      style.indent = bound[1].str;
    } else {
      const Value space = new_text(heap, " ");
      style.indent =
          binary(sandbox, Op::kMul, space, Value(to_int(bound[1], "tojson: indent"))).str;
    }
  }
  if (bound.given(2)) {
    const std::vector<Value> separators = unpack(sandbox, bound[2], 2);
    style.item_separator = &to_str(separators[0], "tojson: separators");
    style.key_separator = &to_str(separators[1], "tojson: separators");
  } else {
    style.item_separator = make_str(heap, style.indent == nullptr ? ", " : ",", Origin::kTemplate);
    style.key_separator = make_str(heap, ": ", Origin::kTemplate);
  }
  return JsonPrinter(sandbox, style).run(self);
}

constexpr Native kFilters[] = {{"tojson", tojson}};

}  // namespace

std::span<const Native> json_filters() { return kFilters; }

}  // namespace tinyvllm::jinja
