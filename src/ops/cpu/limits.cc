#include "ops/cpu/limits.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/stopwatch.h"
#include "ops/cpu/kernel_table.h"

namespace tinyvllm::ops::cpu {
namespace {

// The buffer is far larger than any cache, so every piece of it comes from memory each time; pieces
// are short, so that some are read while nothing else runs.
constexpr size_t kBufferBytes = size_t{1} << 30;
constexpr int64_t kPieceBytes = int64_t{1} << 27;
constexpr int64_t kPieces = static_cast<int64_t>(kBufferBytes) / kPieceBytes;
constexpr int64_t kTaskBytes = int64_t{1} << 20;
constexpr int64_t kRounds = 400'000;  // about 1 ms of FMAs

// Filling the buffer takes a tenth of a second, or a second where memory is in small pieces;
// reading gets what then is left.
constexpr double kReadAndFillSeconds = 0.65;
constexpr double kLeastReadSeconds = 0.15;
constexpr double kComputeSeconds = 0.1;
constexpr double kPatience = 0.02;

// The least disturbed of the runs that fit the time; at least two, because the first also wakes
// threads. `run` gives its seconds.
template <class Run>
double best_seconds(double budget, Run&& run) {
  const Stopwatch clock;
  double best = 1e30;
  for (int i = 0; i < 2 || clock.seconds() < budget; ++i) best = std::min(best, run(i));
  return best;
}

// Seconds in which every thread did `work` once, all at the same time. They wait for each other: a
// pool gives the share of a late thread to another one, and that would measure one core twice.
template <class Work>
double all_at_once(ThreadPool& pool, Work&& work) {
  const Stopwatch clock;
  std::atomic<int> arrived{0};
  std::atomic<double> begin{1e30};
  std::atomic<double> end{0};
  pool.parallel_for(pool.size(), [&](int64_t, int) {
    arrived += 1;
    while (arrived < pool.size() && clock.seconds() < kPatience) std::this_thread::yield();
    const double began = clock.seconds();
    work();
    const double ended = clock.seconds();
    for (double seen = begin; began < seen && !begin.compare_exchange_weak(seen, began);) {
    }
    for (double seen = end; ended > seen && !end.compare_exchange_weak(seen, ended);) {
    }
  });
  return end - begin;
}

}  // namespace

Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool) {
  const Stopwatch clock;
  const Kernels& k = kernels(device);
  std::atomic<int64_t> sink{0};  // results go somewhere, so that loops are not dropped
  MachineLimits limits;
  const double work = static_cast<double>(kRounds) * pool.size();
  limits.flops_per_s = 192 * work / best_seconds(kComputeSeconds, [&](int) {
                         return all_at_once(pool, [&] {
                           sink += static_cast<int64_t>(k.multiply_add(kRounds, 1e-3f));
                         });
                       });
  limits.int8_ops_per_s = 512 * work / best_seconds(kComputeSeconds, [&](int) {
                            return all_at_once(pool, [&] { sink += k.multiply_bytes(kRounds, 3); });
                          });

  if (device.available_memory() < 2 * kBufferBytes) {
    return error("measuring the memory's speed takes 1 GiB, and only ",
                 human_bytes(static_cast<double>(device.available_memory())), " are available");
  }
  TRY_ASSIGN(const Buffer buffer, device.allocate(kBufferBytes, "measuring the memory's speed"));
  auto* data = static_cast<char*>(buffer.data());
  pool.parallel_for(static_cast<int64_t>(kBufferBytes) / kTaskBytes, [&](int64_t task, int) {
    std::memset(data + task * kTaskBytes, static_cast<int>(task), static_cast<size_t>(kTaskBytes));
  });
  const double left = 2 * kComputeSeconds + kReadAndFillSeconds - clock.seconds();
  const double budget = std::max(left, kLeastReadSeconds) / 4;
  for (const auto read : {k.read_forward, k.read_prefetched}) {
    for (const int64_t task_bytes : {kTaskBytes, kTaskBytes * 8}) {
      const double seconds = best_seconds(budget, [&](int64_t i) {
        const char* piece = data + i % kPieces * kPieceBytes;
        const Stopwatch run;
        pool.parallel_for(kPieceBytes / task_bytes, [&](int64_t t, int) {
          sink += read(piece + t * task_bytes, task_bytes);
        });
        return run.seconds();
      });
      limits.read_bytes_per_s =
          std::max(limits.read_bytes_per_s, static_cast<double>(kPieceBytes) / seconds);
    }
  }
  return limits;
}

}  // namespace tinyvllm::ops::cpu
