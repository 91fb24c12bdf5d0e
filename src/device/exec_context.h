// What an op needs besides its tensors: where it runs, who helps, where scratch and KV lie. Made
// anew for each step by the runner and handed down by reference; there is no other way to reach a
// device.
#pragma once

#include <span>

#include "base/tensor.h"
#include "base/thread_pool.h"
#include "core/kv.h"
#include "device/arena.h"
#include "device/device.h"
#include "telemetry/fault_watch.h"
#include "telemetry/ledger.h"
#include "telemetry/trace_context.h"

namespace tinyvllm {

struct ExecContext {
  Device& device;
  ThreadPool& pool;
  Arena& arena;
  std::span<const KvView> kv;  // one per group
  // Ops check shapes, take their scratch and return: measures the arena before there is one.
  bool dry_run = false;
  int layer = -1;  // being computed; -1 outside the layers
  Phase phase = Phase::kPrefill;
  Ledger* ledger = nullptr;  // null: nobody is watching
  TraceContext trace = {};
  FaultWatch* faults = nullptr;

  // What layers add to: never rounded to less than a float.
  Tensor residual(int64_t rows, int64_t cols) { return tensor(rows, cols, DType::kF32); }
  Tensor tensor(int64_t rows, int64_t cols) {
    return tensor(rows, cols, device.activation_dtype());
  }
  Tensor tensor(int64_t rows, int64_t cols, DType dtype) {
    return Tensor(arena.take(row_bytes(dtype, cols) * static_cast<size_t>(rows)), dtype, rows,
                  cols);
  }
};

}  // namespace tinyvllm
