#include "ops/cpu/limits.h"

#include <atomic>
#include <chrono>
#include <cstring>

#include "ops/cpu/kernel_table.h"

namespace tinyvllm::ops::cpu {
namespace {

constexpr size_t kReadBytes = size_t{1} << 30;
constexpr int64_t kReadTask = int64_t{1} << 21;
constexpr int64_t kRounds = 4'000'000;  // about 10 ms of FMAs
constexpr int kRepeats = 5;

// Best of a few runs: the least disturbed one.
template <class Body>
double best_seconds(Body&& body) {
  double best = 1e30;
  for (int i = 0; i < kRepeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count());
  }
  return best;
}

}  // namespace

Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool) {
  const Kernels& k = kernels(device);
  TRY_ASSIGN(const Buffer buffer, device.allocate(kReadBytes, "measuring the memory's speed"));
  auto* data = static_cast<char*>(buffer.data());
  const int64_t tasks = static_cast<int64_t>(kReadBytes) / kReadTask;
  pool.parallel_for(tasks, [&](int64_t task, int) {
    std::memset(data + task * kReadTask, static_cast<int>(task), static_cast<size_t>(kReadTask));
  });

  std::atomic<int64_t> sink{0};  // results go somewhere, so that loops are not dropped
  MachineLimits limits;
  for (const auto read : {k.read_forward, k.read_prefetched}) {
    const double seconds = best_seconds([&] {
      pool.parallel_for(tasks,
                        [&](int64_t t, int) { sink += read(data + t * kReadTask, kReadTask); });
    });
    limits.read_bytes_per_s =
        std::max(limits.read_bytes_per_s, static_cast<double>(kReadBytes) / seconds);
  }
  const double work = static_cast<double>(kRounds) * pool.size();
  limits.flops_per_s = 192 * work / best_seconds([&] {
                         pool.parallel_for(pool.size(), [&](int64_t, int) {
                           sink += static_cast<int64_t>(k.multiply_add(kRounds, 1e-3f));
                         });
                       });
  limits.int8_ops_per_s =
      512 * work / best_seconds([&] {
        pool.parallel_for(pool.size(), [&](int64_t, int) { sink += k.multiply_bytes(kRounds, 3); });
      });
  return limits;
}

}  // namespace tinyvllm::ops::cpu
