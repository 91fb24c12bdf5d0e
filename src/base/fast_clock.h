// The clock of what happens by the hundred in a step. now_ns() lets the processor finish all that
// came before, and so costs more than it takes; this one reads the processor's counter, and works
// out the time from when it was last set by the other.
#pragma once

#include "base/stopwatch.h"

namespace tinyvllm {

class FastClock {
 public:
  FastClock() = default;   // never set: now_ns() itself
  static FastClock set();  // now; not, where the system itself does not trust that counter

  int64_t now() const {
#if defined(__x86_64__)
    if (ns_per_tick_ > 0) {
      const auto ticks = static_cast<int64_t>(__builtin_ia32_rdtsc() - set_ticks_);
      return set_ns_ + static_cast<int64_t>(static_cast<double>(ticks) * ns_per_tick_);
    }
#endif
    return now_ns();
  }

 private:
  int64_t set_ns_ = 0;
  uint64_t set_ticks_ = 0;
  double ns_per_tick_ = 0;
};

}  // namespace tinyvllm
