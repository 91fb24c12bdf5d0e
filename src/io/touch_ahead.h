// Has the kernel note the pages of tensors that are about to be copied in this process's page
// table, beside whatever the caller does until then. Otherwise whoever reads such a page first does
// it, and holds a lock of the file's meanwhile, for up to 2 MiB of it: threads that copy
// neighbouring parts wait for each other, and all of them when the one that has the lock is stopped
// by a busy host. What is not in memory is left alone: it is read when it is needed.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "io/weight_source.h"

namespace tinyvllm {

class TouchAhead {
 public:
  explicit TouchAhead(const WeightSource& weights);  // which outlive this
  ~TouchAhead();                                     // touches no more
  TouchAhead(const TouchAhead&) = delete;
  TouchAhead& operator=(const TouchAhead&) = delete;

 private:
  void touch();

  const std::vector<WeightTensor>& tensors_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tinyvllm
