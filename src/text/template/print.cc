#include "text/template/print.h"

#include "base/utf8.h"
#include "text/template/interpreter.h"
#include "text/template/loop.h"
#include "text/template/native.h"
#include "text/template/numbers.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

// Python prints where an object lies in memory. Here they all lie in one place, so that a prompt is
// the same every time and yet has as many words and letters.
constexpr char kPlace[] = " at 0x7f0000000000>";

// Some of Jinja2's functions are classes, and print as such.
std::string function_text(std::string_view name) {
  if (name == "dict") return "<class 'dict'>";
  if (name == "namespace") return "<class 'jinja2.utils.Namespace'>";
  if (name == "cycler") return "<class 'jinja2.utils.Cycler'>";
  if (name == "joiner") return "<class 'jinja2.utils.Joiner'>";
  return str_cat("<function ", name, ">");
}

// The namespaces being printed, so that one that holds itself ends in "{...}".
struct Printing {
  const Dict* dict;
  const Printing* outer;
};

class Printer {
 public:
  Printer(Sandbox& sandbox, TextBuilder& out) : sandbox_(sandbox), out_(out) {}

  void repr(const Value& value, const Printing* printing) {
    const Nesting nesting(sandbox_);
    sandbox_.charge(1);
    switch (value.kind) {
      case Kind::kUndefined:
        return out_.append("Undefined", value.origin);
      case Kind::kStr:
        return repr_text(*value.str);
      case Kind::kList:
        return repr_items(value, *value.list, "[", "]", printing);
      case Kind::kTuple:
        return repr_items(value, *value.list, "(", value.list->size == 1 ? ",)" : ")", printing);
      case Kind::kDict:
        return repr_dict(*value.dict, value.origin, printing);
      case Kind::kView:
        return repr_view(*value.view, value.origin, printing);
      case Kind::kNamespace:
        out_.append("<Namespace ", value.origin);
        repr_dict(*value.dict, value.origin, printing);
        return out_.append(">", value.origin);
      default:
        return out_.append(simple(value), value.origin);
    }
  }

 private:
  void repr_text(const Str& text) {
    if (text.markup) out_.append("Markup(", text.origin);
    print_quoted(out_, text);
    if (text.markup) out_.append(")", text.origin);
  }

  void repr_items(const Value& value, const List& list, std::string_view open,
                  std::string_view close, const Printing* printing) {
    out_.append(open, value.origin);
    for (uint32_t i = 0; i < list.size; ++i) {
      if (i != 0) out_.append(", ", value.origin);
      repr(list.items[i], printing);
    }
    out_.append(close, value.origin);
  }

  void repr_dict(const Dict& dict, Origin origin, const Printing* printing) {
    for (const Printing* outer = printing; outer != nullptr; outer = outer->outer) {
      if (outer->dict == &dict) return out_.append("{...}", origin);
    }
    const Printing here{&dict, printing};
    out_.append("{", origin);
    for (const Dict::Entry& entry : dict) {
      if (&entry != dict.begin()) out_.append(", ", origin);
      repr(entry.key, &here);
      out_.append(": ", origin);
      repr(entry.value, &here);
    }
    out_.append("}", origin);
  }

  void repr_view(const View& view, Origin origin, const Printing* printing) {
    out_.append(type_name(Value(&view, origin)), origin);
    out_.append("([", origin);
    for (const Dict::Entry& entry : *view.dict) {
      if (&entry != view.dict->begin()) out_.append(", ", origin);
      const bool items = view.part == View::Part::kItems;
      if (items) out_.append("(", origin);
      if (view.part != View::Part::kValues) repr(entry.key, printing);
      if (items) out_.append(", ", origin);
      if (view.part != View::Part::kKeys) repr(entry.value, printing);
      if (items) out_.append(")", origin);
    }
    out_.append("])", origin);
  }

  // What consists of one piece.
  std::string simple(const Value& value) const {
    switch (value.kind) {
      case Kind::kNone:
        return "None";
      case Kind::kBool:
        return value.boolean ? "True" : "False";
      case Kind::kInt:
        return std::to_string(value.integer);
      case Kind::kFloat:
        return float_repr(value.number);
      case Kind::kRange: {
        const Range& range = *value.range;
        return range.step == 1
                   ? str_cat("range(", range.start, ", ", range.stop, ")")
                   : str_cat("range(", range.start, ", ", range.stop, ", ", range.step, ")");
      }
      case Kind::kMacro:
        return value.macro->body->name.empty() ? "<Macro anonymous>"
                                               : str_cat("<Macro '", value.macro->body->name, "'>");
      case Kind::kLoop:
        return str_cat("<LoopContext ", value.loop->index0 + 1, "/", value.loop->length(), ">");
      case Kind::kFunction:
        return function_text(value.function->name);
      case Kind::kMethod:
        return str_cat("<built-in method ", value.method->native->name, " of ",
                       type_name(value.method->self), " object", kPlace);
      default:
        return str_cat("<", type_name(value), " object", kPlace);
    }
  }

  Sandbox& sandbox_;
  TextBuilder& out_;
};

}  // namespace

void print(Sandbox& sandbox, TextBuilder& out, const Value& value) {
  if (value.is(Kind::kUndefined)) return;
  if (!value.is(Kind::kStr)) return print_repr(sandbox, out, value);
  sandbox.charge_bytes(value.str->size);
  out.append(*value.str);
}

void print_repr(Sandbox& sandbox, TextBuilder& out, const Value& value) {
  Printer(sandbox, out).repr(value, nullptr);
}

const Str* to_text(Sandbox& sandbox, const Value& value) {
  if (value.is(Kind::kStr)) return value.str;
  TextBuilder out(sandbox.heap());
  print(sandbox, out, value);
  return out.finish();
}

const Str* to_ascii(Sandbox& sandbox, const Str& text) {
  sandbox.charge_bytes(text.size);
  TextBuilder out(sandbox.heap());
  for (size_t at = 0; at < text.size;) {
    const auto begin = static_cast<uint32_t>(at);
    const char32_t c = utf8_next(text.view(), at);
    if (c < 0x80) {
      out.append(text, begin, begin + 1);
    } else {
      out.append(unicode::escape(c), text.origin_at(begin));
    }
  }
  return out.finish();
}

void print_quoted(TextBuilder& out, const Str& text) {
  const std::string_view bytes = text.view();
  const bool single =
      bytes.find('\'') == std::string_view::npos || bytes.find('"') != std::string_view::npos;
  const std::string_view quote = single ? "'" : "\"";
  const auto mark = static_cast<char32_t>(quote[0]);
  out.append(quote, text.any_origin());
  uint32_t kept = 0;
  for (size_t at = 0; at < bytes.size();) {
    const auto begin = static_cast<uint32_t>(at);
    const char32_t c = utf8_next(bytes, at);
    const bool named = c == '\n' || c == '\r' || c == '\t' || c == '\\' || c == mark;
    const bool plain = c < 0x80 ? c >= 0x20 && c != 0x7F : unicode::is_printable(c);
    if (plain && !named) continue;
    out.append(text, kept, begin);
    kept = static_cast<uint32_t>(at);
    const Origin origin = text.origin_at(begin);
    if (!named) {
      out.append(unicode::escape(c), origin);
      continue;
    }
    const char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : static_cast<char>(c);
    const char escaped[] = {'\\', letter};
    out.append({escaped, 2}, origin);
  }
  out.append(text, kept, text.size);
  out.append(quote, text.any_origin());
}

}  // namespace tinyvllm::jinja
