// A template and the conversation to render it with, cut at byte 0x1E. Limits are tight, so that an
// input which finds a way around them shows as a timeout.
#include "text/template/template.h"

#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "text/template/json_value.h"

using namespace tinyvllm;

namespace {

constexpr char kSeparator = 0x1E;

// What callers rely on: the text is UTF-8, and its marks are ascending places between characters.
void check(const jinja::Rendered& rendered) {
  CHECK(is_utf8(rendered.text));
  size_t last = 0;
  for (const uint32_t flip : rendered.flips) {
    CHECK(flip > last && flip < rendered.text.size()) << "a mark at " << flip;
    CHECK((rendered.text[flip] & 0xC0) != 0x80) << "a mark inside of a character";
    last = flip;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find(kSeparator), input.size());
  const std::string_view json = end == input.size() ? "{}" : input.substr(end + 1);

  jinja::Limits limits;
  limits.steps = 200'000;
  limits.memory_bytes = 16 << 20;
  limits.output_bytes = 1 << 20;
  const auto compiled = jinja::Template::compile(input.substr(0, end), limits);
  if (!compiled.ok()) return 0;
  jinja::Heap heap(64 << 20);
  const auto variables = jinja::parse_json(heap, json, jinja::Origin::kMessage);
  if (!variables.ok() || !variables.value().is(jinja::Kind::kDict)) return 0;
  const auto rendered = compiled.value().render(*variables.value().dict, limits, {});
  if (rendered.ok()) check(rendered.value());
  return 0;
}
