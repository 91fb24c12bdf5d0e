// TINYVLLM_DEBUG on stderr: one line per step, and at 2 one per op, a moment after it ran.
//
//   *** cpu-avx2 block_12 norm_linear        Q4_1 [1, 576] → 960      mem   0.35 MB tm   31.02us …
//   *** step 7 decode: 3 sequences, 0 + 3 tokens, 0 waiting, scheduled in 0.00 ms, tm 7312.93us …
#pragma once

#include <memory>

#include "telemetry/tracer.h"

namespace tinyvllm {

class LiveLines final : public TraceSink {
 public:
  explicit LiveLines(TraceLevel level) : level_(level) {}
  // As the environment variable asks; null when it does not.
  static std::shared_ptr<LiveLines> from_environment();

  TraceLevel level() const override { return level_; }
  void take(const TraceRecord& record) override;

 private:
  const TraceLevel level_;
  StepPlanned plan_;  // of the step under way
};

}  // namespace tinyvllm
