// What noting something costs the thread that does it, measured here and now: part of every trace,
// so that an analysis can say how much slower its run was than an untraced one.
#pragma once

namespace tinyvllm {

struct TraceCost {
  double ns_per_record = 0;    // of an op: two looks at the clock, and its place in the ring
  double ns_per_span = 0;      // of a part of the engine's work, the same with a span to nest in
  double ns_per_zone_off = 0;  // of either while nobody listens
};

TraceCost measure_trace_cost();  // takes about a millisecond

}  // namespace tinyvllm
