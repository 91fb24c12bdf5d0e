// A watched step's times on a device that works on its own: ops and layers are enqueued with marks
// around them, and when the last one has passed, all of them are noted at once. The step waits for
// its device once instead of once an op.
#pragma once

#include <vector>

#include "device/device.h"
#include "telemetry/device_clock.h"
#include "telemetry/ledger.h"
#include "telemetry/trace_context.h"

namespace tinyvllm {

class StepClock final : public DeviceClock {
 public:
  // `begin_ns`, by the host's clock: nothing is dated before it.
  StepClock(Device& device, int64_t begin_ns) : device_(device), begin_ns_(begin_ns) {}

  int64_t mark() override { return device_.mark(); }
  void between(int64_t begin, int64_t end, TraceRecord&& record) override {
    waiting_.push_back({begin, end, std::move(record)});
  }
  void outside_ops(int64_t begin, int64_t end, TraceRecord&& record) override {
    waiting_.push_back({begin, end, std::move(record), /*outside_ops=*/true});
  }

  // Waits until the device has passed the last mark, and says when that was; then the calls go to
  // the ledger, and records to the trace that wants them.
  int64_t settle(int64_t last, const TraceContext& trace, Ledger* ledger);
  int64_t time_of(int64_t mark) const;  // by the host's clock, from then on

 private:
  struct Waiting {
    int64_t begin, end;  // marks
    TraceRecord record;
    bool outside_ops = false;
  };
  struct Op {
    int64_t begin;  // mark
    int64_t ns;
  };
  int64_t ops_since(int64_t mark) const;

  Device& device_;
  const int64_t begin_ns_;
  int64_t last_ = -1;  // mark, and when it was passed
  int64_t last_ns_ = 0;
  std::vector<Waiting> waiting_;
  std::vector<Op> ops_;
};

}  // namespace tinyvllm
