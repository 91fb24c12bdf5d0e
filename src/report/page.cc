#include "report/page.h"

#include <algorithm>

#include "base/strings.h"

namespace tinyvllm {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1e293b; --soft: #64748b; --rule: #e2e8f0;
  --raised: #f8fafc; --c0: #2563eb; --c1: #d97706; --c2: #059669; --c3: #db2777; --c4: #7c3aed; --c5: #64748b; }
@media (prefers-color-scheme: dark) { :root { --back: #0f172a; --text: #e2e8f0; --soft: #94a3b8;
  --rule: #334155; --raised: #1e293b; --c0: #60a5fa; --c1: #fbbf24; --c2: #34d399; --c3: #f472b6; --c4: #a78bfa; --c5: #94a3b8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--back); color: var(--text);
  font: 15px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--rule); padding-bottom: .3rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } tbody tr:hover { background: var(--raised); }
tfoot td { font-weight: 600; border-top: 2px solid var(--rule); } .l { text-align: left; }
figure { margin: 1.5rem 0; padding: 1rem; border: 1px solid var(--rule); border-radius: .5rem; background: var(--raised); }
figure svg { display: block; width: 100%; height: auto; }
pre { overflow-x: auto; padding: .8rem 1rem; border-radius: .5rem; background: var(--raised); border: 1px solid var(--rule); }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
@media print { body { max-width: none; } figure, table { break-inside: avoid; } }
)";

std::string html_of(const Heading& heading) {
  const std::string tag = str_cat("h", std::clamp(heading.level, 1, 6));
  return str_cat("<", tag, ">", html_escape(heading.text), "</", tag, ">\n");
}

std::string html_of(const Paragraph& paragraph) {
  const std::string text = html_escape(paragraph.text);
  return paragraph.strong ? str_cat("<p><strong>", text, "</strong></p>\n")
                          : str_cat("<p>", text, "</p>\n");
}

std::string html_of(const Code& code) {
  return str_cat("<pre><code>", html_escape(code.text), "</code></pre>\n");
}

std::string html_of(const Figure& figure) { return str_cat("<figure>", figure.svg, "</figure>\n"); }

std::string html_of(const Table& table) {
  const auto row = [&](const char* tag, const auto& cell) {
    std::string out = "<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const bool left = table.columns[c].align == Column::kLeft;
      out += str_cat("<", tag, left ? " class=\"l\">" : ">", html_escape(cell(c)), "</", tag, ">");
    }
    return out + "</tr>\n";
  };
  std::string out = "<div class=\"wide\"><table><thead>";
  out += row("th", [&](size_t c) { return table.columns[c].name; }) + "</thead><tbody>\n";
  for (const auto& cells : table.rows) out += row("td", [&](size_t c) { return cells[c]; });
  out += "</tbody>";
  if (!table.total.empty()) {
    out += str_cat("<tfoot>", row("td", [&](size_t c) { return table.total[c]; }), "</tfoot>");
  }
  return out + "</table></div>\n";
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Page& Page::add(const Block& block) {
  body_ += std::visit([](const auto& b) { return html_of(b); }, block);
  return *this;
}

Page& Page::raw(std::string_view html) {
  body_ += html;
  return *this;
}

std::string Page::html() const {
  return str_cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      html_escape(title_), "</title>\n<style>", kStyle, "</style>\n</head>\n<body>\n", body_,
      "</body>\n</html>\n");
}

}  // namespace tinyvllm
