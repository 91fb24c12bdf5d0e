// The sections that a trace of ours fills beyond the kernel sections. Each is empty, and says so,
// where the log has not what it needs.
#pragma once

#include "report/analyze/sections.h"
#include "report/analyze/trace.h"
#include "telemetry/roofline.h"

namespace tinyvllm {

TableSection overhead_table(const Trace& trace);
TableSection roofline_table(const Trace& trace, size_t top);
TableSection phase_table(const Trace& trace);
TableSection steps_table(const Trace& trace, size_t top);
TableSection requests_table(const Trace& trace, size_t top);
TableSection memory_table(const Trace& trace);
TableSection unexplained_table(const Trace& trace);

// The ops of a log beside the limits that it states, and how long its steps took.
RooflineTable roofline_of(const Trace& trace);

// What the last record of a type said; empty when there is none.
const Facts& facts_of(const Trace& trace, std::string_view type);
int64_t wall_ns(const Trace& trace);  // from the first record to the last
bool is_prefill(const StepRow& step);

}  // namespace tinyvllm
