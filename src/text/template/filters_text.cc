// Filters that make text out of text.
#include <algorithm>

#include "base/utf8.h"
#include "text/template/format.h"
#include "text/template/iterate.h"
#include "text/template/native.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/text_ops.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

const Str* plain(Sandbox& sandbox, const Value& value) {
  return with_markup(sandbox.heap(), *to_text(sandbox, value), false);
}

template <Case to>
Value in_case(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("the filter", arguments, {}, 0);
  const Str* text = to_text(sandbox, self);
  return Value(with_markup(sandbox.heap(), *change_case(sandbox, *text, to), text->markup));
}

// Jinja's own idea of words: what follows white space, a hyphen or an opening bracket.
Value title(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("title", arguments, {}, 0);
  const Str& text = *to_text(sandbox, self);
  sandbox.charge_bytes(size_t{text.size} * 4);
  const auto separates = [](char32_t c) {
    return unicode::is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  TextBuilder out(sandbox.heap());
  for (uint32_t at = 0; at < text.size;) {
    const uint32_t begin = at;
    size_t next = at;
    const bool kind = separates(utf8_next(text.view(), next));
    while (next < text.size) {
      size_t after = next;
      if (separates(utf8_next(text.view(), after)) != kind) break;
      next = after;
    }
    at = static_cast<uint32_t>(next);
    // A run of separators is a "word" to Jinja too, but has no case to change.
    if (kind) {
      out.append(text, begin, at);
      continue;
    }
    const uint32_t first = begin + text.char_bytes(begin);
    out.append(*change_case(sandbox, *substr(sandbox.heap(), text, begin, first), Case::kUpper));
    out.append(*change_case(sandbox, *substr(sandbox.heap(), text, first, at), Case::kLower));
  }
  return Value(out.finish());
}

Value trim(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("trim", arguments, {"chars"}, 0);
  const Str* chars = bound.given(0) ? &to_str(bound[0], "trim") : nullptr;
  return Value(strip(sandbox, *to_text(sandbox, self), chars, true, true));
}

Value replaced(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("replace", arguments, {"old", "new", "count"}, 2);
  const int64_t limit = bound.given(2) ? to_int(bound[2], "replace") : -1;
  const Str* text = plain(sandbox, self);
  return Value(
      replace(sandbox, *text, *to_text(sandbox, bound[0]), *to_text(sandbox, bound[1]), limit));
}

Value center(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("center", arguments, {"width"}, 0);
  const int64_t width = bound.has(0) ? to_int(bound[0], "center") : 80;
  return Value(pad(sandbox, *to_text(sandbox, self), width, nullptr, Align::kCenter));
}

Value string(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("string", arguments, 0, 0);
  return Value(to_text(sandbox, self));
}

Value format(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.keywords.empty()) {
    fail("format takes positional or keyword arguments, not both");
  }
  Value values = new_tuple(sandbox.heap(), arguments.positional);
  if (!arguments.keywords.empty()) {
    Dict* named = sandbox.heap().make<Dict>();
    for (const Keyword& keyword : arguments.keywords) {
      named->set(sandbox.heap(), new_text(sandbox.heap(), keyword.name), keyword.value);
    }
    values = Value::of_dict(named);
  }
  return format_percent(sandbox, *to_text(sandbox, self), values);
}

Value indent(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"}, 0);
  const bool first = bound.has(1) && is_true(sandbox, bound[1]);
  const bool blank = bound.has(2) && is_true(sandbox, bound[2]);
  Heap& heap = sandbox.heap();
  const Str* indention = nullptr;
  if (bound.has(0) && bound[0].is(Kind::kStr)) {
    indention = bound[0].str;
  } else {
    const int64_t width = bound.has(0) ? to_int(bound[0], "indent") : 4;
    indention = pad(sandbox, *make_str(heap, "", Origin::kTemplate), width, nullptr, Align::kLeft);
  }
  // A line end added at the end lets the last line be counted even if it is empty.
  const Str& text = to_str(self, "indent");
  const Str* newline = make_str(heap, "\n", Origin::kTemplate);
  const std::vector<Value> lines = split_lines(sandbox, *concat(heap, text, *newline), false);
  TextBuilder out(heap);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) out.append(*newline);
    if (i == 0 ? first : blank || lines[i].str->size != 0) out.append(*indention);
    out.append(*lines[i].str);
    sandbox.charge_bytes(indention->size + lines[i].str->size);
  }
  return Value(out.finish(text.markup));
}

Value truncate(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0);
  Heap& heap = sandbox.heap();
  const int64_t length_limit = bound.has(0) ? to_int(bound[0], "truncate") : 255;
  const Value end = bound.has(2) ? bound[2] : new_text(heap, "...");
  const int64_t leeway = bound.given(3) ? to_int(bound[3], "truncate") : 5;
  if (length_limit < length(end))
    fail("truncate: the length is shorter than what is put at the end");
  if (leeway < 0) fail("truncate: the leeway is negative");
  const __int128 allowed = static_cast<__int128>(length_limit) + leeway;
  if (length(self) <= allowed) return self;
  const Str& text = to_str(self, "truncate");
  const Str& ending = to_str(end, "truncate");
  const auto kept = static_cast<uint32_t>(length_limit - ending.chars);
  const Str* head = substr(heap, text, 0, text.offset_of(kept));
  if (!(bound.has(1) && is_true(sandbox, bound[1]))) {
    const size_t space = head->view().rfind(' ');
    if (space != std::string_view::npos) {
      head = substr(heap, *head, 0, static_cast<uint32_t>(space));
    }
  }
  return binary(sandbox, Op::kAdd, Value(head), end);
}

Value word_count(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("wordcount", arguments, {}, 0);
  const Str& text = *to_text(sandbox, self);
  sandbox.charge_bytes(text.size);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size;) {
    const bool word = unicode::is_word(utf8_next(text.view(), at));
    words += word && !inside;
    inside = word;
  }
  return Value(words, self.text_origin());
}

constexpr Native kFilters[] = {
    {"capitalize", in_case<Case::kCapitalize>},
    {"center", center},
    {"format", format},
    {"indent", indent},
    {"lower", in_case<Case::kLower>},
    {"replace", replaced},
    {"string", string},
    {"title", title},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", in_case<Case::kUpper>},
    {"wordcount", word_count},
};

}  // namespace

std::span<const Native> text_filters() { return kFilters; }

}  // namespace tinyvllm::jinja
