// The methods of str. What a method of markup returns is markup again.
#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "text/template/format.h"
#include "text/template/html.h"
#include "text/template/iterate.h"
#include "text/template/methods.h"
#include "text/template/operators.h"
#include "text/template/text_ops.h"
#include "text/template/unicode.h"

namespace tinyvllm::jinja {
namespace {

Value as_self(Sandbox& sandbox, const Value& self, const Str* text) {
  return Value(with_markup(sandbox.heap(), *text, self.str->markup));
}

template <Case to>
Value in_case(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("a method that changes case", arguments, 0, 0);
  return as_self(sandbox, self, change_case(sandbox, *self.str, to));
}

template <bool left, bool right>
Value stripped(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("strip", arguments, 0, 1);
  const Str* chars = nullptr;
  if (!arguments.positional.empty() && !arguments.positional[0].is(Kind::kNone)) {
    chars = &to_str(arguments.positional[0], "strip");
  }
  return Value(strip(sandbox, *self.str, chars, left, right));
}

template <auto function>
Value splitted(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("split", arguments, {"sep", "maxsplit"}, 0);
  const Str* separator = bound.given(0) ? &to_str(bound[0], "split") : nullptr;
  const int64_t limit = bound.has(1) ? to_int(bound[1], "split") : -1;
  return new_list(sandbox.heap(), function(sandbox, *self.str, separator, limit));
}

Value splitlines(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("splitlines", arguments, {"keepends"}, 0);
  const bool keep = bound.has(0) && is_true(sandbox, bound[0]);
  return new_list(sandbox.heap(), split_lines(sandbox, *self.str, keep));
}

Value joined(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("join", arguments, 1, 1);
  return Value(join(sandbox, *self.str, to_vector(sandbox, arguments.positional[0])));
}

Value replaced(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("replace", arguments, 2, 3);
  const Str& from = to_str(arguments.positional[0], "replace");
  const Str* to = &to_str(arguments.positional[1], "replace");
  if (self.str->markup) to = escape_html(sandbox, *to);
  const int64_t limit =
      arguments.positional.size() > 2 ? to_int(arguments.positional[2], "replace") : -1;
  return as_self(sandbox, self, replace(sandbox, *self.str, from, *to, limit));
}

// The part of the string that optional start and end arguments select, in bytes.
struct Span {
  uint32_t begin, end;
  bool empty_start;  // start lies beyond the end: not even "" is found there
};

Span span_of(Sandbox& sandbox, const Str& text, const Arguments& arguments, size_t first) {
  const auto part = [&](size_t i) {
    return i < arguments.positional.size() ? arguments.positional[i] : Value();
  };
  const Value start = part(first);
  const SliceRange range = slice_range(text.chars, start, part(first + 1), Value());
  sandbox.charge_bytes(text.ascii() ? 0 : text.size);
  const bool beyond = start.is_int() && start.as_int() > int64_t{text.chars};
  const uint32_t begin = text.offset_of(static_cast<uint32_t>(range.start));
  const uint32_t end = text.offset_of(static_cast<uint32_t>(range.stop));
  return {begin, end, beyond || begin > end};
}

// Characters before `what` in the selected part, or -1.
template <bool backwards>
int64_t position_of(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("find", arguments, 1, 3);
  const Str& text = *self.str;
  const Str& what = to_str(arguments.positional[0], "find");
  const Span span = span_of(sandbox, text, arguments, 1);
  if (span.empty_start) return -1;
  const std::string_view part = text.view().substr(span.begin, span.end - span.begin);
  const size_t at = backwards
                        ? find_text_backwards(sandbox, part, what.view(), std::string_view::npos)
                        : find_text(sandbox, part, what.view(), 0);
  if (at == std::string_view::npos) return -1;
  const size_t offset = span.begin + at;
  return text.ascii() ? static_cast<int64_t>(offset) : count_chars(text.view().substr(0, offset));
}

template <bool backwards>
Value find(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  return Value(position_of<backwards>(sandbox, self, arguments), self.text_origin());
}

template <bool backwards>
Value index(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const int64_t position = position_of<backwards>(sandbox, self, arguments);
  if (position < 0) fail("index: substring not found");
  return Value(position, self.text_origin());
}

Value count(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("count", arguments, 1, 3);
  const Str& what = to_str(arguments.positional[0], "count");
  const Span span = span_of(sandbox, *self.str, arguments, 1);
  if (span.empty_start) return Value(int64_t{0});
  const std::string_view part = self.str->view().substr(span.begin, span.end - span.begin);
  if (what.size == 0) return Value(int64_t{count_chars(part)} + 1, self.text_origin());
  int64_t found = 0;
  for (size_t at = 0; (at = find_text(sandbox, part, what.view(), at)) != part.npos; ++found) {
    at += what.size;
  }
  return Value(found, self.text_origin());
}

template <bool suffix>
bool has_affix(std::string_view part, const Str& affix) {
  return suffix ? part.ends_with(affix.view()) : part.starts_with(affix.view());
}

template <bool suffix>
Value with_affix(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional(suffix ? "endswith" : "startswith", arguments, 1, 3);
  const Span span = span_of(sandbox, *self.str, arguments, 1);
  const Value& affix = arguments.positional[0];
  if (affix.is(Kind::kTuple)) {
    for (const Value& one : *affix.list) to_str(one, "startswith or endswith");
  } else {
    to_str(affix, "startswith or endswith");
  }
  if (span.empty_start) return Value(false);
  const std::string_view part = self.str->view().substr(span.begin, span.end - span.begin);
  if (affix.is(Kind::kStr)) return Value(has_affix<suffix>(part, *affix.str));
  return Value(std::any_of(affix.list->begin(), affix.list->end(),
                           [&](const Value& one) { return has_affix<suffix>(part, *one.str); }));
}

template <bool suffix>
Value remove_affix(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional(suffix ? "removesuffix" : "removeprefix", arguments, 1, 1);
  const Str& affix = to_str(arguments.positional[0], suffix ? "removesuffix" : "removeprefix");
  const Str& text = *self.str;
  if (!has_affix<suffix>(text.view(), affix)) return self;
  const uint32_t begin = suffix ? 0 : affix.size;
  return Value(substr(sandbox.heap(), text, begin, begin + text.size - affix.size));
}

template <bool backwards>
Value partition(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("partition", arguments, 1, 1);
  Heap& heap = sandbox.heap();
  const Str& text = *self.str;
  const Str& separator = to_str(arguments.positional[0], "partition");
  if (separator.size == 0) fail("partition: the separator is empty");
  const size_t at = backwards
                        ? find_text_backwards(sandbox, text.view(), separator.view(), text.size)
                        : find_text(sandbox, text.view(), separator.view(), 0);
  const Value empty = Value(substr(heap, text, 0, 0));
  if (at == std::string_view::npos) {
    return backwards ? new_tuple(heap, {empty, empty, self})
                     : new_tuple(heap, {self, empty, empty});
  }
  const auto begin = static_cast<uint32_t>(at);
  const uint32_t end = begin + separator.size;
  return new_tuple(heap,
                   {Value(substr(heap, text, 0, begin)), Value(substr(heap, text, begin, end)),
                    Value(substr(heap, text, end, text.size))});
}

template <Align align>
Value padded(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("a method that pads", arguments, 1, 2);
  const int64_t width = to_int(arguments.positional[0], "the width");
  const Str* fill = nullptr;
  if (arguments.positional.size() > 1) {
    fill = &to_str(arguments.positional[1], "the fill character");
    if (self.str->markup) fill = escape_html(sandbox, *fill);
  }
  return Value(pad(sandbox, *self.str, width, fill, align));
}

Value zfill(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("zfill", arguments, 1, 1);
  return Value(zero_fill(sandbox, *self.str, to_int(arguments.positional[0], "zfill")));
}

Value expandtabs(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  const Bound bound("expandtabs", arguments, {"tabsize"}, 0);
  return Value(expand_tabs(sandbox, *self.str, bound.has(0) ? to_int(bound[0], "expandtabs") : 8));
}

Value format(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  return format_braces(sandbox, *self.str, arguments, Value());
}

Value format_map(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("format_map", arguments, 1, 1);
  return format_braces(sandbox, *self.str, {}, arguments.positional[0]);
}

// isalpha() and its kin: every character is, and there is one.
template <bool (*is)(char32_t)>
Value all_are(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("a method that tests characters", arguments, 0, 0);
  sandbox.charge_bytes(size_t{self.str->size} * 4);
  for (size_t at = 0; at < self.str->size;) {
    if (!is(utf8_next(self.str->view(), at))) return Value(false);
  }
  return Value(self.str->size != 0);
}

Value isascii(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("isascii", arguments, 0, 0);
  return Value(self.str->ascii());
}

Value isprintable(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  if (self.str->size == 0) return Value(true);
  return all_are<unicode::is_printable>(sandbox, self, arguments);
}

Value isidentifier(Sandbox&, const Value& self, const Arguments& arguments) {
  expect_positional("isidentifier", arguments, 0, 0);
  for (size_t at = 0; at < self.str->size;) {
    const bool first = at == 0;
    const char32_t c = utf8_next(self.str->view(), at);
    if (!(first ? unicode::starts_identifier(c) : unicode::continues_identifier(c))) {
      return Value(false);
    }
  }
  return Value(self.str->size != 0);
}

Value istitle(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional("istitle", arguments, 0, 0);
  sandbox.charge_bytes(self.str->size);
  bool any = false;
  bool after_cased = false;
  for (size_t at = 0; at < self.str->size;) {
    const char32_t c = utf8_next(self.str->view(), at);
    const bool starts = unicode::is_upper(c) || unicode::is_title(c);
    if (starts ? after_cased : unicode::is_lower(c) && !after_cased) return Value(false);
    after_cased = unicode::is_cased(c);
    any |= after_cased;
  }
  return Value(any);
}

template <bool upper>
Value is_in_case(Sandbox& sandbox, const Value& self, const Arguments& arguments) {
  expect_positional(upper ? "isupper" : "islower", arguments, 0, 0);
  return Value(has_only_case(sandbox, *self.str, upper));
}

constexpr Native kMethods[] = {
    {"capitalize", in_case<Case::kCapitalize>},
    {"casefold", in_case<Case::kFold>},
    {"center", padded<Align::kCenter>},
    {"count", count},
    {"endswith", with_affix<true>},
    {"expandtabs", expandtabs},
    {"find", find<false>},
    {"format", format},
    {"format_map", format_map},
    {"index", index<false>},
    {"isalnum", all_are<unicode::is_alnum>},
    {"isalpha", all_are<unicode::is_alpha>},
    {"isascii", isascii},
    {"isdecimal", all_are<unicode::is_decimal>},
    {"isdigit", all_are<unicode::is_digit>},
    {"isidentifier", isidentifier},
    {"islower", is_in_case<false>},
    {"isnumeric", all_are<unicode::is_numeric>},
    {"isprintable", isprintable},
    {"isspace", all_are<unicode::is_space>},
    {"istitle", istitle},
    {"isupper", is_in_case<true>},
    {"join", joined},
    {"ljust", padded<Align::kLeft>},
    {"lower", in_case<Case::kLower>},
    {"lstrip", stripped<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replaced},
    {"rfind", find<true>},
    {"rindex", index<true>},
    {"rjust", padded<Align::kRight>},
    {"rpartition", partition<true>},
    {"rsplit", splitted<split_right>},
    {"rstrip", stripped<false, true>},
    {"split", splitted<split>},
    {"splitlines", splitlines},
    {"startswith", with_affix<false>},
    {"strip", stripped<true, true>},
    {"swapcase", in_case<Case::kSwap>},
    {"title", in_case<Case::kTitle>},
    {"upper", in_case<Case::kUpper>},
    {"zfill", zfill},
};

}  // namespace

std::span<const Native> str_methods() { return kMethods; }

}  // namespace tinyvllm::jinja
