#include "ops/op_scope.h"

#include <algorithm>

namespace tinyvllm::ops {

WatchedOp::WatchedOp(ExecContext& ctx)
    : ctx_(ctx), watches_loops_(ctx.trace.on(TraceLevel::kKernel) && ctx.trace.clock == nullptr) {
  if (watches_loops_) ctx_.pool.watch(this);
  begin_ns_ = ctx.trace.now();
  if (ctx_.trace.clock != nullptr) begin_mark_ = ctx_.trace.clock->mark();
}

WatchedOp::~WatchedOp() {
  if (watches_loops_) ctx_.pool.watch(nullptr);
}

void WatchedOp::finish(OpCall& call) {
  call.begin_ns = begin_ns_;
  call.phase = ctx_.phase;
  call.layer = ctx_.layer;
  TraceContext& trace = ctx_.trace;
  if (trace.clock != nullptr) {
    const SpanId own = trace.on(TraceLevel::kOp) ? trace.tracer->new_span() : 0;
    trace.clock->between(begin_mark_, trace.clock->mark(),
                         {TraceLevel::kOp, 0, 0, own, trace.parent,
                          OpCompleted{call, trace.step, trace.backend, ctx_.pool.size()}});
    return;
  }
  if (ctx_.ledger != nullptr) ctx_.ledger->add(call);
  if (!trace.on(TraceLevel::kOp)) return;
  trace.op_ns += call.end_ns - call.begin_ns;
  const SpanId span = trace.tracer->new_span();
  for (LoopTimes& loop : loops_) {
    const int64_t begin = loop.begin_ns;
    const int64_t end = loop.end_ns;
    int64_t busy = 0;
    for (const ThreadTime& thread : loop.threads) busy += thread.busy_ns;
    trace.wait_ns += std::max<int64_t>(0, end - begin - busy / ctx_.pool.size());
    trace.tracer->add(
        TraceLevel::kKernel, begin, end, trace.tracer->new_span(), span,
        std::make_unique<Loop>(Loop{call, trace.step, trace.backend, std::move(loop)}));
  }
  trace.tracer->add(TraceLevel::kOp, call.begin_ns, call.end_ns, span, trace.parent,
                    OpCompleted{call, trace.step, trace.backend, ctx_.pool.size()});
}

}  // namespace tinyvllm::ops
