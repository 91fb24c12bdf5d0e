// One layer of a forward, as long as this lives: its ops know its number, its activations are given
// back at its end, and a trace has its time.
#pragma once

#include "device/exec_context.h"

namespace tinyvllm {

class LayerScope {
 public:
  LayerScope(ExecContext& ctx, int layer)
      : ctx_(ctx),
        arena_(ctx.arena),
        part_(ctx.trace, TraceLevel::kOp, "generation_loop", "block_{}_total", layer),
        op_ns_before_(ctx.trace.op_ns) {
    ctx.layer = layer;
  }
  ~LayerScope() {
    const int layer = ctx_.layer;
    ctx_.layer = -1;
    if (ctx_.trace.on(TraceLevel::kKernel)) trace_host_time(layer);
  }
  LayerScope(const LayerScope&) = delete;
  LayerScope& operator=(const LayerScope&) = delete;

 private:
  // What the layer took besides its ops: taking tensors, checking shapes, describing.
  void trace_host_time(int layer) {
    TraceContext& trace = ctx_.trace;
    const SpanId span = trace.parent;
    const int64_t total_ns = part_.end();
    PartCompleted outside{"generation_loop", "forward_cpu_block_{}", layer, trace.step};
    if (trace.clock != nullptr) {
      trace.clock->outside_ops(
          part_.begin_mark(), trace.clock->mark(),
          {TraceLevel::kKernel, 0, 0, trace.tracer->new_span(), span, std::move(outside)});
      return;
    }
    const int64_t host_ns = std::max<int64_t>(0, total_ns - (trace.op_ns - op_ns_before_));
    const int64_t end = part_.begin_ns() + total_ns;
    trace.tracer->add({TraceLevel::kKernel, end - host_ns, end, trace.tracer->new_span(), span,
                       std::move(outside)});
  }

  ExecContext& ctx_;
  const ArenaScope arena_;
  PartScope part_;
  const int64_t op_ns_before_;
};

}  // namespace tinyvllm
