// What a page's timeline shows: all steps and requests of a run, and of some steps, the telling
// ones, also layers and ops. Bounded, so that a page opens however long the run was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/analyze/name_table.h"
#include "report/analyze/trace.h"

namespace tinyvllm {

struct Timeline {
  enum Row { kRequests, kSteps, kLayers, kOps };
  struct Span {
    Row row = kSteps;
    int64_t begin_ns = 0, end_ns = 0;
    size_t name = 0;  // place in `names`
    int lane = 0;     // requests lie above each other
  };
  struct View {
    std::string name;  // "slowest decode step"
    int64_t begin_ns = 0, end_ns = 0;
  };

  std::vector<Span> spans;
  std::vector<std::string> names;
  std::vector<View> views;
  int64_t end_ns = 0;
  int lanes = 1;
};

Result<Timeline> make_timeline(const Trace& trace);

}  // namespace tinyvllm
