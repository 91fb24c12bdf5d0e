// The sections of an analysis. Kernel sections are lines "name: count=… | total=…", in the form
// that readers of such logs script against; the others are tables. Both are data first, and become
// text, JSON or a page afterwards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "report/analyze/samples.h"
#include "report/analyze/trace.h"
#include "report/document.h"

namespace tinyvllm {

struct AnalyzeOptions {
  size_t top = 20;            // lines of a section
  size_t kernel_top = 50;     // lines of "Kernel aggregate"
  std::string kernel_filter;  // only kernels whose name holds this, in any case
};

struct StatLine {
  std::string name;
  Stats stats;
  std::optional<int64_t> count = {};  // of things that have no duration
  std::vector<StatLine> inner = {};   // then the name is only a heading
};

struct StatSection {
  std::string title;
  std::vector<StatLine> lines;
};

std::vector<StatSection> kernel_sections(const Trace& trace, const AnalyzeOptions& options);

// What a table shows, and the number behind it for those who compute with it.
struct Cell {
  std::string text;
  std::optional<double> number = {};
};
Cell text_cell(std::string_view text);
Cell number_cell(double value, int decimals = 0);
Cell ms_cell(double ns, int decimals = 2);
Cell percent_cell(double part, double whole);  // "12.3%"; empty when there is no whole

struct TableSection {
  struct Heading {
    std::string key;   // in JSON
    std::string name;  // in text
    Column::Align align = Column::kRight;
  };
  std::string title;
  std::vector<Heading> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes = {};
  std::vector<std::pair<std::string, double>> values = {};  // single numbers, for JSON
};

std::string to_text(const StatSection& section);
std::string to_text(const TableSection& section);
Table to_table(const TableSection& section);
void to_json(const StatSection& section, JsonWriter& json);
void to_json(const TableSection& section, JsonWriter& json);
std::string json_key(std::string_view title);  // "Steps (by batch)" → "steps_by_batch"

}  // namespace tinyvllm
