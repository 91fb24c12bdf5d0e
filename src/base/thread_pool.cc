#include "base/thread_pool.h"

#include <algorithm>
#include <cstdio>
#include <sched.h>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"

namespace tinyvllm {
namespace {

// About 50 µs on the machines measured: longer than the gap between two ops of a step, far shorter
// than the time between two requests.
constexpr int kSpins = 20000;

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

uint32_t loop_of(uint64_t next) { return static_cast<uint32_t>(next >> 32); }
uint32_t task_of(uint64_t next) { return static_cast<uint32_t>(next); }

int read_int(const std::string& path, int fallback) {
  int value = fallback;
  if (std::FILE* file = std::fopen(path.c_str(), "r")) {
    if (std::fscanf(file, "%d", &value) != 1) value = fallback;
    std::fclose(file);
  }
  return value;
}

// Whole cores that the cgroup's CPU quota allows; `limit` when there is no quota.
int cgroup_cores(int limit) {
  double quota = 0;
  double period = 0;
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {  // cgroup v2
    if (std::fscanf(file, "%lf %lf", &quota, &period) != 2) quota = 0;
    std::fclose(file);
  } else {  // v1
    quota = read_int("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", 0);
    period = read_int("/sys/fs/cgroup/cpu/cpu.cfs_period_us", 0);
  }
  if (quota <= 0 || period <= 0) return limit;
  return std::clamp(static_cast<int>(quota / period + 0.5), 1, limit);
}

}  // namespace

int default_thread_count() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<std::pair<int, int>> cores;  // (package, core): hyper-threads of one core count once
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    cores.emplace(read_int(topology + "physical_package_id", 0),
                  read_int(topology + "core_id", cpu));
  }
  const int count = std::max<int>(1, static_cast<int>(cores.size()));
  return cgroup_cores(count);
}

ThreadPool::ThreadPool(int threads) : threads_(std::max(1, threads)) {
  for (int thread = 1; thread < threads_; ++thread) {
    workers_.emplace_back([this, thread] { work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::take_tasks(uint32_t loop, int thread) {
  uint64_t next = next_.load(std::memory_order_acquire);
  while (loop_of(next) == loop) {
    const Call call = call_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const uint32_t task = task_of(next);
    if (task >= tasks_.load(std::memory_order_relaxed)) return;
    if (!next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
    call(context, task, thread);
    done_.fetch_add(1, std::memory_order_release);
    next = next_.load(std::memory_order_acquire);
  }
}

void ThreadPool::run(int64_t tasks, Call call, void* context) {
  if (tasks <= 0) return;
  if (threads_ == 1 || tasks == 1) {
    for (int64_t task = 0; task < tasks; ++task) call(context, task, 0);
    return;
  }
  CHECK(tasks <= UINT32_MAX) << tasks << " tasks in one loop";
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  tasks_.store(static_cast<uint32_t>(tasks), std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const uint32_t loop = loop_of(next_.load(std::memory_order_relaxed)) + 1;
  next_.store(static_cast<uint64_t>(loop) << 32, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) {
    std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  take_tasks(loop, 0);
  for (int spins = 0; done_.load(std::memory_order_acquire) != tasks; ++spins) {
    // A worker that lost its core in the middle of a task gets it back sooner if we give up ours.
    if (spins < kSpins) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; loop_of(next_.load(std::memory_order_acquire)) == seen; ++spins) {
      if (spins < kSpins) {
        if (stopping_.load(std::memory_order_relaxed)) return;
        pause_cpu();
        continue;
      }
      std::unique_lock lock(mutex_);
      parked_.fetch_add(1, std::memory_order_seq_cst);
      wake_.wait(lock, [&] {
        return stopping_.load() || loop_of(next_.load(std::memory_order_seq_cst)) != seen;
      });
      parked_.fetch_sub(1, std::memory_order_seq_cst);
      if (stopping_.load()) return;
    }
    seen = loop_of(next_.load(std::memory_order_acquire));
    take_tasks(seen, thread);
  }
}

}  // namespace tinyvllm
