// Where a step stands in the trace: who listens, how closely, and the span that what comes next
// belongs to. Travels with the step, from the engine's core through the runner to the ops; the
// level is the one that the step began with, so that a step is traced as a whole.
#pragma once

#include "base/fast_clock.h"
#include "telemetry/device_clock.h"
#include "telemetry/tracer.h"

namespace tinyvllm {

struct TraceContext {
  Tracer* tracer = nullptr;
  TraceLevel level = TraceLevel::kOff;
  SpanId parent = 0;
  uint64_t step = 0;
  const char* backend = "";   // of the device that runs it
  int64_t op_ns = 0;          // spent inside ops, so far
  int64_t wait_ns = 0;        // that its threads stood at barriers, on average, so far
  FastClock host_clock = {};  // set when the step began, where every op is noted
  // Of the device, where what is noted is its work and not the host's; null: the host's clock.
  DeviceClock* clock = nullptr;

  bool on(TraceLevel wanted) const { return level >= wanted; }
  int64_t now() const { return host_clock.now(); }
};

// A part of the engine's own work, as long as this lives; spans that begin meanwhile are its
// children. Does nothing below its level.
class PartScope {
 public:
  PartScope(TraceContext& trace, TraceLevel level, const char* parent_op, const char* name,
            int layer = -1)
      : trace_(trace), on_(trace.on(level)) {
    if (on_) begin(level, parent_op, name, layer);
  }
  ~PartScope() { end(); }
  PartScope(const PartScope&) = delete;
  PartScope& operator=(const PartScope&) = delete;

  int64_t begin_ns() const { return record_.begin_ns; }
  int64_t begin_mark() const {
    return record_.begin_mark;
  }  // of the device's clock, if there is one
  // Ends it before its time, and says how long it took the host; 0 when nobody asked.
  int64_t end() {
    if (!on_) return 0;
    on_ = false;
    return record();
  }

 private:
  void begin(TraceLevel level, const char* parent_op, const char* name, int layer) {
    record_.level = level;
    record_.span = trace_.tracer->new_span();
    record_.parent = trace_.parent;
    part_ = {parent_op, name, layer, trace_.step};
    trace_.parent = record_.span;
    record_.begin_ns = trace_.now();
    if (trace_.clock != nullptr) record_.begin_mark = trace_.clock->mark();
  }
  int64_t record();

  TraceContext& trace_;
  bool on_;
  PartCompleted part_;
  struct {
    TraceLevel level;
    int64_t begin_ns, begin_mark;
    SpanId span, parent;
  } record_{};
};

}  // namespace tinyvllm
