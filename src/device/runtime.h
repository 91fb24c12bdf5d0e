// What a process has one of: its devices, its thread pool, its memory budget, its tracer. Made in
// main and passed down; engines in the same process share it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "telemetry/tracer.h"
#include "tinyvllm/engine_options.h"

namespace tinyvllm {

struct RuntimeOptions {
  int threads = 0;  // 0: the physical cores this process may use
  DeviceKind device = DeviceKind::kCpu;
  CudaOptions cuda = {};
};

// What a user chose, checked.
Result<RuntimeOptions> runtime_options(const DeviceOptions& chosen);

class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options);

  Device& device() { return *devices_.front(); }
  ThreadPool& pool() { return pool_; }
  Tracer& tracer() { return tracer_; }

  // The pool runs one loop at a time: an engine that computes holds this, a step or a load long.
  std::mutex& turn() { return turn_; }

  // Memory leased to engines: `lease` fails with both numbers when the budget does not have it.
  size_t memory_budget() const { return memory_budget_; }
  Status lease(size_t bytes, const std::string& what);
  void give_back(size_t bytes);

 private:
  explicit Runtime(int threads) : pool_(threads, &tracer_) {}

  Tracer tracer_;
  ThreadPool pool_;
  std::mutex turn_;
  std::vector<std::unique_ptr<Device>> devices_;
  size_t memory_budget_ = 0;
  std::mutex lease_mutex_;
  size_t leased_ = 0;  // under it
};

}  // namespace tinyvllm
