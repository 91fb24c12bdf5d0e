// A progress bar on stderr: drawn over itself on a terminal once the work takes longer than a
// moment, and absent everywhere else.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tinyvllm {

class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `what` is being worked on. Cheap: draws ten times a second at most.
  void update(std::string_view what, int64_t done, int64_t total);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  const std::string title_;
  const bool terminal_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_ = start_;
  bool visible_ = false;
};

}  // namespace tinyvllm
