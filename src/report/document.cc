#include "report/document.h"

#include <algorithm>

#include "base/strings.h"

namespace tinyvllm {
namespace {

constexpr size_t kRule = 70;

std::string padded(const std::string& text, size_t width, Column::Align align) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return align == Column::kLeft ? text + space : space + text;
}

std::string without_end_space(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

std::string text_of(const Heading& heading) {
  const std::string rule(kRule, heading.level <= 2 ? '=' : '-');
  if (heading.level <= 2) return str_cat(rule, "\n", heading.text, "\n", rule, "\n\n");
  return str_cat(heading.text, "\n", std::string(display_width(heading.text), '-'), "\n\n");
}

std::string text_of(const Paragraph& paragraph) { return paragraph.text + "\n\n"; }
std::string text_of(const Code& code) { return code.text + "\n\n"; }
std::string text_of(const Figure&) { return ""; }

std::string text_of(const Table& table) {
  std::vector<size_t> widths;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t width = display_width(table.columns[c].name);
    for (const auto& row : table.rows) width = std::max(width, display_width(row[c]));
    if (!table.total.empty()) width = std::max(width, display_width(table.total[c]));
    widths.push_back(width);
  }
  const auto line = [&](const auto& cell) {
    std::string out;
    for (size_t c = 0; c < widths.size(); ++c) {
      out += (c > 0 ? "  " : "") + padded(cell(c), widths[c], table.columns[c].align);
    }
    return without_end_space(out) + "\n";
  };
  size_t total_width = 2 * (widths.size() - 1);
  for (const size_t width : widths) total_width += width;
  const std::string rule = std::string(total_width, '-') + "\n";
  std::string out = line([&](size_t c) { return table.columns[c].name; }) + rule;
  for (const auto& row : table.rows) out += line([&](size_t c) { return row[c]; });
  if (!table.total.empty()) out += rule + line([&](size_t c) { return table.total[c]; });
  return out + "\n";
}

std::string cell_markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string markdown_of(const Heading& heading) {
  return str_cat(std::string(static_cast<size_t>(heading.level), '#'), " ", heading.text, "\n\n");
}

std::string markdown_of(const Paragraph& paragraph) {
  const char* mark = paragraph.strong ? "**" : "";
  return str_cat(mark, paragraph.text, mark, "\n\n");
}

std::string markdown_of(const Code& code) {
  return str_cat("```", code.language, "\n", code.text, "\n```\n\n");
}

std::string markdown_of(const Figure&) { return ""; }

std::string markdown_of(const Table& table) {
  std::string out = "|";
  for (const Column& column : table.columns) out += str_cat(" ", cell_markdown(column.name), " |");
  out += "\n|";
  for (const Column& column : table.columns)
    out += column.align == Column::kLeft ? "---|" : "---:|";
  auto rows = table.rows;
  if (!table.total.empty()) rows.push_back(table.total);
  for (const auto& row : rows) {
    out += "\n|";
    for (const std::string& cell : row) out += str_cat(" ", cell_markdown(cell), " |");
  }
  return out + "\n\n";
}

}  // namespace

size_t display_width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string to_text(const Block& block) {
  return std::visit([](const auto& b) { return text_of(b); }, block);
}

std::string to_text(const Document& document) {
  std::string out;
  for (const Block& block : document) out += to_text(block);
  return out;
}

std::string to_markdown(const Document& document) {
  std::string out;
  for (const Block& block : document) {
    out += std::visit([](const auto& b) { return markdown_of(b); }, block);
  }
  return out;
}

}  // namespace tinyvllm
