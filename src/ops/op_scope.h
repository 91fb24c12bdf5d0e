// Brackets one op call for the ledger and the trace. `describe` says what the call must move and
// do; it runs only when somebody wants to know.
//
//   const OpScope scope(ctx, [&] { return OpCall{.op = "norm", .rows = x.rows, …}; });
#pragma once

#include <optional>

#include "device/exec_context.h"
#include "telemetry/ledger.h"

namespace tinyvllm::ops {

// An op call that somebody watches: the clock, and at level kernel the loops of the threads.
class WatchedOp final : public LoopWatch {
 public:
  explicit WatchedOp(ExecContext& ctx);
  ~WatchedOp() override;
  void finish(OpCall& call);  // what it was, and when it ended
  void loop_done(LoopTimes&& times) override { loops_.push_back(std::move(times)); }

 private:
  ExecContext& ctx_;
  const bool watches_loops_;
  std::vector<LoopTimes> loops_;
  int64_t begin_ns_;
  int64_t begin_mark_ = 0;  // of the device's clock, where there is one
};

template <class Describe>
class OpScope {
 public:
  // `result`, where there is one, is shown to whoever looks for faults.
  OpScope(ExecContext& ctx, Describe describe, const Tensor* result = nullptr)
      : ctx_(ctx), describe_(std::move(describe)), result_(result) {
    const bool wanted = ctx.ledger != nullptr || ctx.trace.on(TraceLevel::kOp);
    if (wanted && !ctx.dry_run) watched_.emplace(ctx);
  }
  ~OpScope() {
    if (watched_) {
      const int64_t end_ns = ctx_.trace.now();
      OpCall call = describe_();
      call.end_ns = end_ns;
      watched_->finish(call);
    }
    if (ctx_.faults != nullptr && result_ != nullptr && !ctx_.dry_run) {
      ctx_.faults->look(describe_().op, ctx_.layer, *result_);
    }
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  ExecContext& ctx_;
  Describe describe_;
  const Tensor* const result_;
  std::optional<WatchedOp> watched_;
};

// Bytes of an activation tensor, read or written once.
inline double bytes_of(const Tensor& t) {
  return static_cast<double>(row_bytes(t.dtype, t.cols)) * static_cast<double>(t.rows);
}

}  // namespace tinyvllm::ops
