#include "telemetry/trace_context.h"

namespace tinyvllm {

int64_t PartScope::record() {
  const int64_t end = trace_.now();
  trace_.parent = record_.parent;
  if (trace_.clock != nullptr) {
    trace_.clock->between(
        record_.begin_mark, trace_.clock->mark(),
        {record_.level, record_.begin_ns, end, record_.span, record_.parent, part_});
  } else {
    trace_.tracer->add(record_.level, record_.begin_ns, end, record_.span, record_.parent, part_);
  }
  return end - record_.begin_ns;
}

}  // namespace tinyvllm
