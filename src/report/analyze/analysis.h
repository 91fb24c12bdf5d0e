// An analysis of one log: its head and all sections, as the text that people read and scripts
// parse, or as one JSON object.
#pragma once

#include <string>
#include <vector>

#include "report/analyze/sections.h"
#include "report/analyze/trace.h"

namespace tinyvllm {

struct Analysis {
  std::string path;
  std::vector<std::string> head;  // "Total events: 43380", and what was wrong with the file
  std::vector<StatSection> kernels;
  std::vector<TableSection> tables;
};

Analysis analyze(const std::string& path, const Trace& trace, const AnalyzeOptions& options);

std::string to_text(const Analysis& analysis);
std::string to_json(const Analysis& analysis, const Trace& trace);

}  // namespace tinyvllm
