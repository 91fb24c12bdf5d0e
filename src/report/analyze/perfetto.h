// A log as a trace-event file, for the Perfetto UI and chrome://tracing.
#pragma once

#include <string>

#include "base/result.h"
#include "report/analyze/trace.h"

namespace tinyvllm {

Status write_perfetto(const Trace& trace, const std::string& out, const Progress& progress = {});

}  // namespace tinyvllm
