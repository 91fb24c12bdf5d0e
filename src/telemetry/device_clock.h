// The clock of a device that works on its own: it passes points of its work later than they are
// enqueued. What lasted from one to another waits here until it has passed both, and is then noted
// with the device's times.
#pragma once

#include "telemetry/trace_events.h"

namespace tinyvllm {

class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  virtual int64_t mark() = 0;
  // `record` gets its times, and so does the call of an OpCompleted.
  virtual void between(int64_t begin, int64_t end, TraceRecord&& record) = 0;
  // Of that stretch it gets what no op took: a sum, not a stretch.
  virtual void outside_ops(int64_t begin, int64_t end, TraceRecord&& record) = 0;
};

}  // namespace tinyvllm
