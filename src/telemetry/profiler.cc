#include "telemetry/profiler.h"

namespace tinyvllm {

class Profiler::Steps final : public TraceSink {
 public:
  TraceLevel level() const override { return TraceLevel::kOp; }
  bool may_wait() const override { return false; }

  // Ops wait for the end of their step; a step of which none was seen began before us.
  void take(const TraceRecord& record) override {
    if (const auto* op = std::get_if<OpCompleted>(&record.event)) {
      pending_.push_back(*op);
    } else if (const auto* done = std::get_if<StepCompleted>(&record.event)) {
      const size_t waiting = pending_.size();
      std::erase_if(pending_, [&](const OpCompleted& op) {
        if (op.step > done->step) return false;  // of the one submitted ahead
        const OpCall& call = op.call;
        const double seconds = static_cast<double>(call.end_ns - call.begin_ns) / 1e9;
        roofline_.add(call.op, call.dtype, call.phase, {1, seconds, call.bytes, call.flops});
        return true;
      });
      if (pending_.size() == waiting) return;
      roofline_.add_wall(static_cast<double>(record.end_ns - record.begin_ns) / 1e9);
    }
  }
  const Roofline& roofline() const { return roofline_; }

 private:
  std::vector<OpCompleted> pending_;
  Roofline roofline_;
};

Profiler::Profiler(Tracer& tracer) : tracer_(tracer), steps_(std::make_shared<Steps>()) {
  tracer_.attach(steps_);
}

Profiler::~Profiler() { stop(); }

void Profiler::stop() { tracer_.detach(steps_); }

RooflineTable Profiler::table(const MachineLimits& limits) const {
  return steps_->roofline().table(limits);
}

}  // namespace tinyvllm
