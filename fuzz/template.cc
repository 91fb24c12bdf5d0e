// Templates, cut at byte 0x1D, and behind byte 0x1E the conversation to render them with. Limits
// are tight, so that an input which finds a way around them shows as a timeout.
#include "text/template/template.h"

#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "text/chat_template.h"
#include "text/template/json_value.h"

using namespace tinyvllm;

namespace {

constexpr char kNextTemplate = 0x1D;
constexpr char kConversation = 0x1E;

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

bool render(std::string_view source, const jinja::Dict& variables) {
  jinja::Limits limits;
  limits.steps = 200'000;
  limits.memory_bytes = 16 << 20;
  limits.output_bytes = 1 << 20;
  const auto compiled = jinja::Template::compile(source, limits);
  if (!compiled.ok()) return false;
  const auto rendered = compiled.value().render(variables, limits, {});
  if (rendered.ok()) check(rendered.value());
  return rendered.ok();
}

// The same as a model's format; the conversation's text does for its tokenizer_config.json, too.
void render_as_chat(std::string_view source, std::string_view json) {
  TokenizerData model;
  model.chat_template = source;
  model.tokenizer_config_json = json;
  const auto compiled = ChatTemplate::from_model(model);
  const auto input = ChatInput::from_json(json);
  if (!compiled.ok() || !input.ok()) return;
  const auto spoken = ChatInput::from_messages({{"user", std::string(source)}}, true);
  (void)compiled.value().render(spoken).ok();
  const auto prompt = compiled.value().render(input.value());
  if (!prompt.ok()) return;
  size_t last = 0;
  for (const Span& span : prompt.value().template_spans) {
    CHECK(span.begin >= last && span.end > span.begin);
    CHECK(span.end <= prompt.value().text.size());
    last = span.end + 1;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find(kConversation), input.size());
  const std::string_view json = end == input.size() ? "{}" : input.substr(end + 1);
  jinja::Heap heap(64 << 20);
  const auto variables = jinja::parse_json(heap, json, jinja::Origin::kMessage);
  if (!variables.ok() || !variables.value().is(jinja::Kind::kDict)) return 0;

  for (std::string_view rest = input.substr(0, end);;) {
    const size_t cut = std::min(rest.find(kNextTemplate), rest.size());
    const std::string_view source = rest.substr(0, cut);
    // Real limits are far wider: only what passed the tight ones is worth the time.
    if (render(source, *variables.value().dict)) render_as_chat(source, json);
    if (cut == rest.size()) return 0;
    rest.remove_prefix(cut + 1);
  }
}
