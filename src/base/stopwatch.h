// The clock that everything is timed with: steady, in nanoseconds, and in seconds since a start.
#pragma once

#include <chrono>
#include <cstdint>

namespace tinyvllm {

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }

 private:
  int64_t start_ns_ = now_ns();
};

}  // namespace tinyvllm
