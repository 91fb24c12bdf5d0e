#include "text/template/html.h"

namespace tinyvllm::jinja {
namespace {

std::string_view entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return {};
  }
}

}  // namespace

const Str* escape_html(Sandbox& sandbox, const Str& text) {
  if (text.markup) return &text;
  sandbox.charge_bytes(text.size);
  TextBuilder out(sandbox.heap());
  uint32_t kept = 0;
  for (uint32_t i = 0; i < text.size; ++i) {
    const std::string_view replacement = entity(text.data[i]);
    if (replacement.empty()) continue;
    out.append(text, kept, i);
    out.append(replacement, text.origin_at(i));
    kept = i + 1;
  }
  out.append(text, kept, text.size);
  return out.finish(/*markup=*/true);
}

}  // namespace tinyvllm::jinja
