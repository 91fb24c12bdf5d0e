// A profile of an engine while it runs: listens at op level as long as it lives, and counts the
// steps that it saw from beginning to end.
#pragma once

#include <memory>

#include "telemetry/roofline.h"
#include "telemetry/tracer.h"

namespace tinyvllm {

class Profiler {
 public:
  explicit Profiler(Tracer& tracer);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  void stop();                                             // listening; the table stays as it is
  RooflineTable table(const MachineLimits& limits) const;  // once stopped

 private:
  class Steps;

  Tracer& tracer_;
  std::shared_ptr<Steps> steps_;
};

}  // namespace tinyvllm
