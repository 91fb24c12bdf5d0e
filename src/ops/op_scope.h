// Brackets one op call for the ledger. `describe` says what the call must move and do; it runs only
// when somebody keeps a ledger.
//
//   const OpScope scope(ctx, [&] { return OpCall{.op = "norm", .rows = x.rows, …}; });
#pragma once

#include "device/exec_context.h"
#include "telemetry/ledger.h"

namespace tinyvllm::ops {

template <class Describe>
class OpScope {
 public:
  // `result`, where there is one, is shown to whoever looks for faults.
  OpScope(const ExecContext& ctx, Describe describe, const Tensor* result = nullptr)
      : ctx_(ctx),
        describe_(std::move(describe)),
        result_(result),
        on_(ctx.ledger != nullptr && !ctx.dry_run) {
    if (on_) begin_ns_ = Ledger::now_ns();
  }
  ~OpScope() {
    if (ctx_.faults != nullptr && result_ != nullptr && !ctx_.dry_run) {
      ctx_.faults->look(describe_().op, ctx_.layer, *result_);
    }
    if (!on_) return;
    OpCall call = describe_();
    call.end_ns = Ledger::now_ns();
    call.begin_ns = begin_ns_;
    call.phase = ctx_.phase;
    call.layer = ctx_.layer;
    ctx_.ledger->add(call);
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  const ExecContext& ctx_;
  Describe describe_;
  const Tensor* const result_;
  const bool on_;
  int64_t begin_ns_ = 0;
};

// Bytes of an activation tensor, read or written once.
inline double bytes_of(const Tensor& t) {
  return static_cast<double>(row_bytes(t.dtype, t.cols)) * static_cast<double>(t.rows);
}

}  // namespace tinyvllm::ops
