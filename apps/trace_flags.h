// The flags of every command that can be traced: --trace, --trace-level, --trace-rotate.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "device/runtime.h"
#include "telemetry/trace_file.h"

namespace CLI {
class App;
}

namespace tinyvllm {

struct TraceFlags {
  std::string file;  // empty: no trace
  std::string level = "step";
  uint64_t rotate_bytes = 0;
};

void add_trace_flags(CLI::App& command, TraceFlags& flags);

// The trace, as long as it is kept: begun before the model is loaded, so that it has that too. Null
// when none is asked for. A machine that was never measured is measured now: a trace has its
// limits.
Result<std::unique_ptr<TraceLog>> open_trace(Runtime& runtime, const TraceFlags& flags,
                                             const std::string& command, const std::string& model);

}  // namespace tinyvllm
