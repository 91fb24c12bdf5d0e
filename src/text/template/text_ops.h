// What Python's str methods and the text filters do, on marked text: a character keeps its mark
// wherever it ends up.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/template/operators.h"
#include "text/template/value.h"

namespace tinyvllm::jinja {

Value slice_text(Sandbox& sandbox, const Str& text, const SliceRange& slice);

enum class Case : uint8_t { kUpper, kLower, kTitle, kCapitalize, kSwap, kFold };
const Str* change_case(Sandbox& sandbox, const Str& text, Case to);

// str.isupper() or islower(): no letter in another case, and at least one in this.
bool has_only_case(Sandbox& sandbox, const Str& text, bool upper);

// Takes characters of `chars` (white space if null) off the ends.
const Str* strip(Sandbox& sandbox, const Str& text, const Str* chars, bool left, bool right);

// Like string_view::find and rfind. Forwards in linear time, whatever the strings.
size_t find_text(Sandbox& sandbox, std::string_view text, std::string_view what, size_t from);
size_t find_text_backwards(Sandbox& sandbox, std::string_view text, std::string_view what,
                           size_t from);

// At most `limit` replacements; all of them if negative.
const Str* replace(Sandbox& sandbox, const Str& text, const Str& from, const Str& to,
                   int64_t limit);

// str.split and rsplit: by runs of white space if `separator` is null.
std::vector<Value> split(Sandbox& sandbox, const Str& text, const Str* separator, int64_t limit);
std::vector<Value> split_right(Sandbox& sandbox, const Str& text, const Str* separator,
                               int64_t limit);
std::vector<Value> split_lines(Sandbox& sandbox, const Str& text, bool keep_ends);

// The strings with `separator` in between; fails if one is no string.
const Str* join(Sandbox& sandbox, const Str& separator, const std::vector<Value>& items);

// Spaces (or `fill`, one character) to the left and right, up to `width` characters.
enum class Align : uint8_t { kLeft, kRight, kCenter };
const Str* pad(Sandbox& sandbox, const Str& text, int64_t width, const Str* fill, Align align);
const Str* zero_fill(Sandbox& sandbox, const Str& text, int64_t width);
const Str* expand_tabs(Sandbox& sandbox, const Str& text, int64_t tab_size);

}  // namespace tinyvllm::jinja
