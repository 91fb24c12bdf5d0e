#include "telemetry/trace_cost.h"

#include <algorithm>

#include "telemetry/trace_context.h"

namespace tinyvllm {
namespace {

constexpr int kRounds = 6;
constexpr int kRecords = 1000;  // of a round, after which the ring is emptied

// Takes everything and does nothing: what is measured is the thread that notes.
class Nobody final : public TraceSink {
 public:
  TraceLevel level() const override { return TraceLevel::kKernel; }
  void take(const TraceRecord&) override {}
};

// The best of a few rounds, by the call.
template <class Prepare, class Note>
double best_ns(int count, Prepare&& prepare, Note&& note) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    prepare();
    const int64_t begin = now_ns();
    for (int i = 0; i < count; ++i) note(i);
    best = std::min(best, static_cast<double>(now_ns() - begin) / count);
  }
  return best;
}

}  // namespace

TraceCost measure_trace_cost() {
  TraceCost cost;
  Tracer tracer(/*places=*/1024);
  const auto nobody = std::make_shared<Nobody>();
  tracer.attach(nobody);
  TraceContext trace{.tracer = &tracer, .level = TraceLevel::kOp, .host_clock = FastClock::set()};
  const auto empty = [&] { tracer.flush(); };
  cost.ns_per_record = best_ns(kRecords, empty, [&](int i) {
    OpCompleted op;
    op.call.rows = i;
    const int64_t begin = trace.now();
    tracer.add(TraceLevel::kOp, begin, trace.now(), tracer.new_span(), trace.parent, op);
  });
  cost.ns_per_span = best_ns(kRecords, empty, [&](int i) {
    const PartScope part(trace, TraceLevel::kOp, "generation_loop", "block_{}_total", i);
  });
  // The compiler must not see that nobody listens.
  volatile TraceLevel off = TraceLevel::kOff;
  trace.level = off;
  cost.ns_per_zone_off = best_ns(100 * kRecords, empty, [&](int i) {
    asm volatile("" : : : "memory");
    const PartScope part(trace, TraceLevel::kOp, "generation_loop", "block_{}_total", i);
  });
  return cost;
}

}  // namespace tinyvllm
