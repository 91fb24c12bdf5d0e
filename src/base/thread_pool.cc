#include "base/thread_pool.h"

#include <algorithm>
#include <cstdio>
#include <sched.h>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/stopwatch.h"

namespace tinyvllm {
namespace {

// About 50 µs on the machines measured: longer than the gap between two ops of a step, far shorter
// than the time between two requests.
constexpr int kSpins = 2000;
// About 5 µs: a gap that is still open then is not the one between two ops, and will last.
constexpr int kSpinsBeforeSpare = 200;
constexpr int kSpinsBetweenLooks = 16;  // for spare work
// A task that has not come back after a few µs may wait for the core that we are spinning on.
constexpr int kSpinsBeforeYield = 200;

constexpr uint64_t kNothingLeft = 0xFFFFFFFF;
constexpr uint64_t loop_word(uint64_t loop, uint64_t task) { return loop << 32 | task; }
constexpr uint64_t loop_of(uint64_t word) { return word >> 32; }
constexpr uint64_t task_of(uint64_t word) { return word & kNothingLeft; }

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

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

ThreadPool::ThreadPool(int threads, SpareWork* spare)
    : threads_(std::max(1, threads)), spare_(spare) {
  next_.store(loop_word(0, kNothingLeft));
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

void ThreadPool::take_tasks(int thread) {
  uint32_t taken = 0;
  uint64_t word = next_.load(std::memory_order_acquire);
  for (;;) {
    const Call call = call_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const uint64_t task = task_of(word);
    if (task >= tasks_.load(std::memory_order_relaxed)) break;
    // Succeeds only if the word has not changed since it was read: then neither have the fields.
    if (!next_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel)) continue;
    call(context, static_cast<int64_t>(task), thread);
    taken += 1;
    word = next_.load(std::memory_order_acquire);
  }
  if (taken > 0) finished_.fetch_add(taken, std::memory_order_release);
}

void ThreadPool::run(int64_t tasks, Call call, void* context) {
  if (tasks <= 0) return;
  if (threads_ == 1 || tasks == 1) {
    for (int64_t task = 0; task < tasks; ++task) call(context, task, 0);
    return;
  }
  CHECK(tasks < static_cast<int64_t>(kNothingLeft)) << tasks << " tasks in one loop";
  const uint64_t last = next_.load(std::memory_order_relaxed);
  CHECK(task_of(last) == kNothingLeft) << "a parallel loop inside a parallel loop";
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  tasks_.store(static_cast<uint32_t>(tasks), std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  next_.store(loop_word(loop_of(last) + 1, 0), std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) {
    { std::lock_guard lock(mutex_); }  // nobody is between its last look and its wait
    wake_.notify_all();
  }
  take_tasks(0);
  for (int spins = 0; finished_.load(std::memory_order_acquire) != tasks_; ++spins) {
    if (spins < kSpinsBeforeYield) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
  next_.store(loop_word(loop_of(last) + 1, kNothingLeft), std::memory_order_release);
}

// The same loop with every task between two looks at the clock. A thread adds to its own times
// only, before it reports the task as finished.
void ThreadPool::run_watched(int64_t tasks, Call call, void* context, const char* what) {
  struct Timed {
    Call call;
    void* context;
    LoopTimes times;
  } timed{call, context, {what, tasks, now_ns(), 0, {}}};
  timed.times.threads.resize(static_cast<size_t>(threads_));
  run(
      tasks,
      [](void* all, int64_t task, int thread) {
        auto& own = *static_cast<Timed*>(all);
        const int64_t begin = now_ns();
        own.call(own.context, task, thread);
        ThreadTime& time = own.times.threads[static_cast<size_t>(thread)];
        time.busy_ns += now_ns() - begin;
        time.tasks += 1;
      },
      &timed);
  timed.times.end_ns = now_ns();
  watch_->loop_done(std::move(timed.times));
}

void ThreadPool::park(uint64_t seen) {
  std::unique_lock lock(mutex_);
  parked_.fetch_add(1, std::memory_order_seq_cst);
  wake_.wait(lock, [&] {
    return stopping_.load() || loop_of(next_.load(std::memory_order_seq_cst)) != seen;
  });
  parked_.fetch_sub(1, std::memory_order_seq_cst);
}

// Until there is another loop than the one last seen, or never will be.
void ThreadPool::spin(uint64_t seen, SpareWork* spare) {
  const auto waiting = [&] {
    return loop_of(next_.load(std::memory_order_acquire)) == seen &&
           !stopping_.load(std::memory_order_relaxed);
  };
  for (int spins = 0; spins < kSpins;) {
    if (!waiting()) return;
    const bool looks = spins >= kSpinsBeforeSpare && spins % kSpinsBetweenLooks == 0;
    if (looks && spare != nullptr && spare->do_some(waiting)) continue;
    spins += 1;
    pause_cpu();
  }
  park(seen);
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    spin(seen, thread == 1 ? spare_ : nullptr);
    seen = loop_of(next_.load(std::memory_order_acquire));
    take_tasks(thread);
  }
}

}  // namespace tinyvllm
