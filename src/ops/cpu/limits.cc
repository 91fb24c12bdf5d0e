#include "ops/cpu/limits.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <thread>
#include <vector>

#include "base/stopwatch.h"
#include "ops/cpu/kernel_table.h"

namespace tinyvllm::ops::cpu {
namespace {

// The buffer is far larger than any cache, so every piece of it comes from memory each time; pieces
// are short, so that some are read while nothing else runs.
constexpr size_t kBufferBytes = size_t{1} << 30;
constexpr int64_t kPieceBytes = int64_t{1} << 25;
constexpr int64_t kPieces = static_cast<int64_t>(kBufferBytes) / kPieceBytes;
constexpr int64_t kTaskBytes = int64_t{1} << 19;
constexpr int64_t kStride = 128;                  // the read loops take so many bytes a turn
constexpr int64_t kLeastRead = int64_t{1} << 22;  // a tenth of a millisecond
constexpr int64_t kRounds = 100'000;              // a third of a millisecond of FMAs

// Filling the buffer takes a tenth of a second, or a second where memory is in small pieces;
// reading gets what then is left.
constexpr double kReadAndFillSeconds = 0.6;
constexpr double kLeastReadSeconds = 0.15;
constexpr double kComputeSeconds = 0.08;
constexpr double kPatience = 0.05;

// The least disturbed of the runs that fit the time; at least two, because the first also wakes
// threads. `run` gives its seconds.
template <class Run>
double best_seconds(double budget, Run&& run) {
  const Stopwatch clock;
  double best = 1e30;
  for (int i = 0; i < 2 || clock.seconds() < budget; ++i) best = std::min(best, run(i));
  return best;
}

// How often a second all threads together do `work`: the sum of their best. Cores multiply each for
// themselves, so their best moments need not be the same ones.
template <class Work>
double best_rate(ThreadPool& pool, Work&& work) {
  std::vector<double> seconds(static_cast<size_t>(pool.size()));
  pool.parallel_for(pool.size(), [&](int64_t task, int) {
    seconds[static_cast<size_t>(task)] = best_seconds(kComputeSeconds, [&](int) {
      const Stopwatch run;
      work();
      return run.seconds();
    });
  });
  double rate = 0;
  for (const double best : seconds) rate += 1 / best;
  return rate;
}

// One CPU number for each physical core that this process may use.
std::vector<int> physical_cpus() {
  cpu_set_t allowed;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    int first_sibling = cpu;
    std::ifstream file(
        str_cat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    file >> first_sibling;
    if (!file || first_sibling == cpu) cpus.push_back(cpu);
  }
  return cpus;
}

// Each thread on a core of its own, for as long as this lives. On a busy machine the kernel may
// leave two of them on one core throughout, and then half of the machine would be measured.
class Pinned {
 public:
  explicit Pinned(ThreadPool& pool) : pool_(pool), before_(static_cast<size_t>(pool.size())) {
    const std::vector<int> cpus = physical_cpus();
    if (cpus.empty()) return;
    for_each_thread([&](size_t thread) {
      sched_getaffinity(0, sizeof before_[thread], &before_[thread]);
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpus[thread % cpus.size()], &one);
      sched_setaffinity(0, sizeof one, &one);
    });
  }
  ~Pinned() {
    for_each_thread([&](size_t thread) {
      if (CPU_COUNT(&before_[thread]) == 0) return;
      sched_setaffinity(0, sizeof before_[thread], &before_[thread]);
    });
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  // Until every thread has come by: a late one's task is otherwise done by another.
  template <class Work>
  void for_each_thread(Work&& work) {
    std::vector<std::atomic<bool>> seen(static_cast<size_t>(pool_.size()));
    const Stopwatch clock;
    const auto all_seen = [&] {
      return std::all_of(seen.begin(), seen.end(), [](const auto& s) { return s.load(); });
    };
    while (!all_seen() && clock.seconds() < kPatience) {
      pool_.parallel_for(pool_.size(), [&](int64_t, int thread) {
        if (!seen[static_cast<size_t>(thread)].exchange(true)) work(static_cast<size_t>(thread));
        while (!all_seen() && clock.seconds() < kPatience) std::this_thread::yield();
      });
    }
  }

  ThreadPool& pool_;
  std::vector<cpu_set_t> before_;  // zero until read
};

// Memory that nobody has written to is one page of zeros.
void fill(ThreadPool& pool, char* data, size_t bytes) {
  const auto end = static_cast<int64_t>(bytes);
  pool.parallel_for((end + kTaskBytes - 1) / kTaskBytes, [&](int64_t task, int) {
    const int64_t begin = task * kTaskBytes;
    std::memset(data + begin, static_cast<int>(task) + 1,
                static_cast<size_t>(std::min(kTaskBytes, end - begin)));
  });
}

}  // namespace

MachineLimits measure_compute(Device& device, ThreadPool& pool) {
  const Kernels& k = kernels(device);
  const Pinned pinned(pool);
  std::atomic<int64_t> sink{0};  // results go somewhere, so that loops are not dropped
  MachineLimits limits;
  limits.flops_per_s = 192.0 * kRounds * best_rate(pool, [&] {
                         sink += static_cast<int64_t>(k.multiply_add(kRounds, 1e-3f));
                       });
  limits.int8_ops_per_s =
      512.0 * kRounds * best_rate(pool, [&] { sink += k.multiply_bytes(kRounds, 3); });
  return limits;
}

Result<std::vector<double>> measure_read(Device& device, ThreadPool& pool, size_t bytes,
                                         const std::vector<int>& thread_counts) {
  const Kernels& k = kernels(device);
  const Pinned pinned(pool);
  std::atomic<int64_t> sink{0};
  TRY_ASSIGN(const Buffer buffer, device.allocate(bytes, "measuring the memory's speed"));
  auto* data = static_cast<char*>(buffer.data());
  fill(pool, data, bytes);
  const int64_t piece = std::min(static_cast<int64_t>(bytes), kPieceBytes);
  const int64_t pieces = static_cast<int64_t>(bytes) / piece;
  // A small piece is read many times between two looks at the clock.
  const int64_t repeats = std::max<int64_t>(1, kLeastRead / piece);
  std::vector<double> rates;
  for (const int threads : thread_counts) {
    const int64_t part = piece / threads / kStride * kStride;
    double best = 0;
    for (const auto read : {k.read_forward, k.read_prefetched}) {
      const double seconds = best_seconds(kLeastReadSeconds / 2, [&](int64_t i) {
        const char* from = data + i % pieces * piece;
        const Stopwatch run;
        pool.parallel_for(threads, [&](int64_t t, int) {
          for (int64_t r = 0; r < repeats; ++r) sink += read(from + t * part, part);
        });
        return run.seconds();
      });
      best = std::max(best, static_cast<double>(part * threads * repeats) / seconds);
    }
    rates.push_back(best);
  }
  return rates;
}

Result<MachineLimits> measure_limits(Device& device, ThreadPool& pool) {
  const Stopwatch clock;
  MachineLimits limits = measure_compute(device, pool);
  const Kernels& k = kernels(device);
  const Pinned pinned(pool);
  std::atomic<int64_t> sink{0};
  if (device.available_memory() < 2 * kBufferBytes) {
    return error("measuring the memory's speed takes 1 GiB, and only ",
                 human_bytes(static_cast<double>(device.available_memory())), " are available");
  }
  TRY_ASSIGN(const Buffer buffer, device.allocate(kBufferBytes, "measuring the memory's speed"));
  auto* data = static_cast<char*>(buffer.data());
  fill(pool, data, kBufferBytes);
  const double left = 2 * kComputeSeconds + kReadAndFillSeconds - clock.seconds();
  const double budget = std::max(left, kLeastReadSeconds) / 6;
  const int64_t equal_parts = kPieceBytes / pool.size() / kStride * kStride;
  for (const auto read : {k.read_forward, k.read_prefetched}) {
    for (const int64_t task_bytes : {kTaskBytes, kTaskBytes * 8, equal_parts}) {
      const int64_t tasks = kPieceBytes / task_bytes;
      const double seconds = best_seconds(budget, [&](int64_t i) {
        const char* piece = data + i % kPieces * kPieceBytes;
        const Stopwatch run;
        pool.parallel_for(
            tasks, [&](int64_t t, int) { sink += read(piece + t * task_bytes, task_bytes); });
        return run.seconds();
      });
      limits.read_bytes_per_s =
          std::max(limits.read_bytes_per_s, static_cast<double>(tasks * task_bytes) / seconds);
    }
  }
  return limits;
}

}  // namespace tinyvllm::ops::cpu
