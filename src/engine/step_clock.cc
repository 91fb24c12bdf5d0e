#include "engine/step_clock.h"

#include <algorithm>

#include "base/stopwatch.h"

namespace tinyvllm {

int64_t StepClock::ops_since(int64_t mark) const {
  int64_t ns = 0;
  for (auto op = ops_.rbegin(); op != ops_.rend() && op->begin >= mark; ++op) ns += op->ns;
  return ns;
}

// The last mark was passed just now; the others, so much before it.
int64_t StepClock::time_of(int64_t mark) const {
  return std::max(begin_ns_, last_ns_ - device_.ns_between(mark, last_));
}

int64_t StepClock::settle(int64_t last, const TraceContext& trace, Ledger* ledger) {
  last_ = last;
  device_.ns_between(last, last);
  last_ns_ = now_ns();
  for (Waiting& waiting : waiting_) {
    TraceRecord& record = waiting.record;
    record.begin_ns = time_of(waiting.begin);
    record.end_ns = std::max(record.begin_ns, time_of(waiting.end));
    if (waiting.outside_ops) {
      const int64_t rest = record.end_ns - record.begin_ns - ops_since(waiting.begin);
      record.begin_ns = record.end_ns - std::max<int64_t>(0, rest);
    }
    if (auto* op = std::get_if<OpCompleted>(&record.event)) {
      op->call.begin_ns = record.begin_ns;
      op->call.end_ns = record.end_ns;
      ops_.push_back({waiting.begin, record.end_ns - record.begin_ns});
      if (ledger != nullptr) ledger->add(op->call);
    }
    if (trace.on(record.level)) trace.tracer->add(std::move(record));
  }
  waiting_.clear();
  return last_ns_;
}

}  // namespace tinyvllm
