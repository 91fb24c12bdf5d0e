// "{} {name[0].role!r:>{width}}".format(…). Fields are looked up by the rules of the sandbox, so a
// format string reaches no further than an expression does.
#include "text/template/format.h"
#include "text/template/html.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace tinyvllm::jinja {
namespace {

class Braces {
 public:
  Braces(Sandbox& sandbox, const Str& format, const Arguments& arguments, const Value& mapping)
      : sandbox_(sandbox), format_(format), arguments_(arguments), mapping_(mapping) {}

  Value run() {
    TextBuilder out(sandbox_.heap());
    expand(format_, out, 3);
    return Value(out.finish(format_.markup));
  }

 private:
  // Literal text and fields; a field's specification may hold fields itself, once.
  void expand(const Str& format, TextBuilder& out, int levels) {
    if (levels == 0) fail("format: fields nested too deep");
    const std::string_view text = format.view();
    for (uint32_t at = 0; at < format.size;) {
      const size_t brace = text.find_first_of("{}", at);
      const auto end = static_cast<uint32_t>(std::min(brace, text.size()));
      out.append(format, at, end);
      if (end == format.size) return;
      const bool doubled = end + 1 < format.size && text[end + 1] == text[end];
      if (doubled) {
        out.append(format, end, end + 1);
        at = end + 2;
      } else if (text[end] == '}') {
        fail("format: a single '}'");
      } else {
        at = expand_field(format, end + 1, out, levels);
      }
    }
  }

  // From behind the opening brace; returns the offset behind the closing one.
  uint32_t expand_field(const Str& format, uint32_t begin, TextBuilder& out, int levels) {
    sandbox_.charge(1);
    const std::string_view text = format.view();
    // The name ends at '!' or ':', unless these stand in an index.
    uint32_t at = begin;
    for (bool index = false; at < format.size; ++at) {
      const char c = text[at];
      if (c == '[') index = true;
      if (c == ']') index = false;
      if (c == '{') fail("format: unexpected '{' in a field name");
      if (!index && (c == '!' || c == ':' || c == '}')) break;
    }
    const uint32_t name_end = at;
    char conversion = 0;
    if (at < format.size && text[at] == '!') {
      if (at + 2 >= format.size) fail("format: the string ends within a field");
      conversion = text[at + 1];
      at += 2;
      if (text[at] != ':' && text[at] != '}') fail("format: expected ':' after the conversion");
    }
    const Str* spec = substr(sandbox_.heap(), format, 0, 0);
    if (at < format.size && text[at] == ':') {
      const uint32_t spec_begin = at + 1;
      at = closing_brace(text, spec_begin);
      spec = substr(sandbox_.heap(), format, spec_begin, at);
    }
    if (at >= format.size) fail("format: expected '}' at the end");
    const Value value = look_up(*substr(sandbox_.heap(), format, begin, name_end));
    emit(value, conversion, *spec, out, levels);
    return at + 1;
  }

  static uint32_t closing_brace(std::string_view text, uint32_t at) {
    for (int open = 1; at < text.size(); ++at) {
      open += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      if (open == 0) return at;
    }
    fail("format: expected '}' at the end");
  }

  void emit(const Value& value, char conversion, const Str& spec, TextBuilder& out, int levels) {
    Value shown = value;
    if (conversion == 's') {
      shown = Value(to_text(sandbox_, value));
    } else if (conversion == 'r' || conversion == 'a') {
      TextBuilder quoted(sandbox_.heap());
      print_repr(sandbox_, quoted, value);
      shown = Value(quoted.finish());
      if (conversion == 'a') shown = Value(to_ascii(sandbox_, *shown.str));
    } else if (conversion != 0) {
      fail("format: unknown conversion '", printable(std::string_view(&conversion, 1)), "'");
    }
    TextBuilder expanded(sandbox_.heap());
    expand(spec, expanded, levels - 1);
    if (!format_.markup) return format_value(sandbox_, out, shown, expanded.view());
    TextBuilder text(sandbox_.heap());
    format_value(sandbox_, text, shown, expanded.view());
    const bool safe = shown.is(Kind::kStr) && shown.str->markup;
    out.append(*escape_html(sandbox_, *text.finish(safe)));
  }

  // name, name.attribute, name[index], 0, or nothing for the next positional argument.
  Value look_up(const Str& field) {
    const std::string_view text = field.view();
    const auto end = static_cast<uint32_t>(std::min(text.find_first_of(".["), text.size()));
    Value value = first_part(text.substr(0, end), end == field.size);
    for (uint32_t at = end; at < field.size;) {
      const bool attribute = text[at] == '.';
      if (!attribute && text[at] != '[') fail("format: expected '.' or '[' in a field name");
      const size_t stop = attribute ? std::min(text.find_first_of(".[", at + 1), text.size())
                                    : text.find(']', at + 1);
      if (stop == std::string_view::npos) fail("format: missing ']' in a field name");
      const Str* part = substr(sandbox_.heap(), field, at + 1, static_cast<uint32_t>(stop));
      if (part->size == 0) fail("format: an empty attribute in a field name");
      if (attribute) {
        value = get_attribute(sandbox_, value, part, find_method_name(part->view()));
      } else {
        const int64_t index = number_of(part->view());
        value = get_item(sandbox_, value, index >= 0 ? Value(index) : Value(part));
      }
      at = static_cast<uint32_t>(stop) + (attribute ? 0 : 1);
    }
    return value;
  }

  static int64_t number_of(std::string_view text) {
    if (text.empty() || text.size() > 18) return -1;
    int64_t number = 0;
    for (const char c : text) {
      if (c < '0' || c > '9') return -1;
      number = number * 10 + (c - '0');
    }
    return number;
  }

  // `whole`: the field consists of nothing else, and then has to keep to one way of numbering.
  Value first_part(std::string_view name, bool whole) {
    const int64_t number = number_of(name);
    const bool automatic = whole && name.empty();
    if (automatic || number >= 0) {
      if (whole && numbering_ != 0 && numbering_ != (automatic ? 1 : 2)) {
        fail("format: fields with and without numbers");
      }
      if (whole) numbering_ = automatic ? 1 : 2;
      const size_t index = automatic ? next_++ : static_cast<size_t>(number);
      if (index >= arguments_.positional.size()) fail("format: no argument ", index);
      return arguments_.positional[index];
    }
    for (const Keyword& keyword : arguments_.keywords) {
      if (keyword.name == name) return keyword.value;
    }
    if (mapping_.is(Kind::kDict)) {
      if (const Value* found = mapping_.dict->find(name)) return *found;
    }
    fail("format: no argument '", printable(name), "'");
  }

  Sandbox& sandbox_;
  const Str& format_;
  const Arguments& arguments_;
  const Value& mapping_;
  size_t next_ = 0;
  int numbering_ = 0;  // 1: automatic, 2: by hand
};

}  // namespace

Value format_braces(Sandbox& sandbox, const Str& format, const Arguments& arguments,
                    const Value& mapping) {
  return Braces(sandbox, format, arguments, mapping).run();
}

}  // namespace tinyvllm::jinja
