// What a report says, once, for everyone who reads it: headings, paragraphs, tables, code and
// charts, written as plain text for a terminal, as Markdown for a repository, and as a page for a
// browser (page.h).
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace tinyvllm {

struct Heading {
  std::string text;
  int level = 2;  // 1: the title
};

struct Paragraph {
  std::string text;
  bool strong = false;
};

struct Column {
  std::string name;
  enum Align { kLeft, kRight } align = kRight;
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as columns
  std::vector<std::string> total = {};         // a last row under a line, or nothing
};

struct Code {
  std::string text;
  std::string language = {};
};

struct Figure {
  std::string svg;  // only a browser shows it
};

using Block = std::variant<Heading, Paragraph, Table, Code, Figure>;
using Document = std::vector<Block>;

// Columns wide enough for their cells, a line of '=' around a title and of '-' under a table's
// head. Every block ends in an empty line.
std::string to_text(const Block& block);
std::string to_text(const Document& document);

std::string to_markdown(const Document& document);

// Letters, as a terminal counts them: bytes that begin a UTF-8 character.
size_t display_width(const std::string& text);

}  // namespace tinyvllm
