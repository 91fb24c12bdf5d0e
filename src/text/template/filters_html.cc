// Filters for HTML and URLs.
#include <cstdio>

#include "text/template/html.h"
#include "text/template/iterate.h"
#include "text/template/native.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace tinyvllm::jinja {
namespace {

Value escape(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("escape", arguments, 0, 0);
  return Value(escape_html(sandbox, *to_text(sandbox, self)));
}

// Like escape, but what was declared safe before is escaped all the same.
Value forceescape(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("forceescape", arguments, {}, 0);
  const Str* text = with_markup(sandbox.heap(), *to_text(sandbox, self), false);
  return Value(escape_html(sandbox, *text));
}

Value safe(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("safe", arguments, {}, 0);
  return Value(with_markup(sandbox.heap(), *to_text(sandbox, self), true));
}

// {'a': 1} → ' a="1"'.
Value xmlattr(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("xmlattr", arguments, {"autospace"}, 0);
  if (!self.is(Kind::kDict)) fail_type("xmlattr needs a mapping", self);
  TextBuilder out(sandbox.heap());
  for (const Dict::Entry& entry : *self.dict) {
    if (entry.value.is(Kind::kNone) || entry.value.is(Kind::kUndefined)) continue;
    const Str& key = to_str(entry.key, "the name of an attribute");
    if (key.view().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      fail("invalid character in the attribute name '", printable(key.view()), "'");
    }
    const bool space = out.size() != 0 || !bound.has(0) || is_true(sandbox, bound[0]);
    if (space) out.append(" ", self.origin);
    out.append(*escape_html(sandbox, key));
    out.append("=\"", self.origin);
    out.append(*escape_html(sandbox, *to_text(sandbox, entry.value)));
    out.append("\"", self.origin);
  }
  return Value(out.finish());
}

// Percent-encoding of all but letters, digits, _.-~ and, outside of a query, the slash.
void quote_url(Sandbox& sandbox, TextBuilder& out, const Value& value, bool query) {
  const Str& text = *to_text(sandbox, value);
  sandbox.charge_bytes(size_t{text.size} * 3);
  for (uint32_t i = 0; i < text.size; ++i) {
    const auto c = static_cast<unsigned char>(text.data[i]);
    const bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    const bool kept = alnum || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query);
    char code[8];
    std::snprintf(code, sizeof(code), kept ? "%c" : "%%%02X", c);
    out.append(query && c == ' ' ? "+" : code, text.origin_at(i));
  }
}

Value urlencode(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("urlencode", arguments, {}, 0);
  TextBuilder out(sandbox.heap());
  if (self.is(Kind::kStr) || !is_iterable(self)) {
    quote_url(sandbox, out, self, false);
    return Value(out.finish());
  }
  Value pairs = self;
  if (self.is(Kind::kDict)) {
    pairs = Value(sandbox.heap().make<View>(View{self.dict, View::Part::kItems}), self.origin);
  }
  Iterator* items = iterate(sandbox, pairs);
  for (Value pair; items->next(pair);) {
    const std::vector<Value> parts = unpack(sandbox, pair, 2);
    if (out.size() != 0) out.append("&", Origin::kTemplate);
    quote_url(sandbox, out, parts[0], true);
    out.append("=", Origin::kTemplate);
    quote_url(sandbox, out, parts[1], true);
  }
  return Value(out.finish());
}

constexpr Native kFilters[] = {
    {"e", escape},  {"escape", escape},       {"forceescape", forceescape},
    {"safe", safe}, {"urlencode", urlencode}, {"xmlattr", xmlattr},
};

}  // namespace

std::span<const Native> html_filters() { return kFilters; }

}  // namespace tinyvllm::jinja
