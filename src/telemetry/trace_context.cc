#include "telemetry/trace_context.h"

namespace tinyvllm {

int64_t PartScope::record() {
  const int64_t end = now_ns();
  trace_.parent = record_.parent;
  trace_.tracer->add({record_.level, record_.begin_ns, end, record_.span, record_.parent, part_});
  return end - record_.begin_ns;
}

}  // namespace tinyvllm
