// A fixed team of threads that runs one parallel loop at a time. The caller works too, so a pool of
// one thread starts none. Between two loops workers spin for a moment, because the next op of a
// step follows within microseconds, and then park: an idle engine uses no CPU.
//
// Results never depend on who ran which task; the numerics contract leans on that.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace tinyvllm {

// Physical cores that this process may use: its affinity mask and cgroup quota counted in.
int default_thread_count();

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return threads_; }

  // Calls body(task, thread) for every task in [0, tasks), tasks handed out in ascending order, and
  // returns when all are done. Not reentrant; one caller at a time.
  template <class Body>
  void parallel_for(int64_t tasks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        tasks,
        [](void* context, int64_t task, int thread) {
          (*static_cast<Plain*>(context))(task, thread);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* context, int64_t task, int thread);
  void run(int64_t tasks, Call call, void* context);
  void work(int thread);
  void take_tasks(uint32_t loop, int thread);

  const int threads_;
  std::vector<std::thread> workers_;

  // The loop being run. The caller writes it before `next_` names the loop, and not again before
  // all its tasks are done; a worker trusts what it read once it has claimed a task of the same
  // loop.
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<uint32_t> tasks_{0};

  // Loop number (high half) and next task (low half) in one word, so that a worker that comes late
  // can never take a task of a loop it does not know. The caller waits for tasks, not for workers:
  // one that the system keeps from running holds nobody up.
  alignas(64) std::atomic<uint64_t> next_{0};
  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<bool> stopping_{false};
  std::atomic<int> parked_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace tinyvllm
