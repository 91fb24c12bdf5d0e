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
  void take_tasks(int thread);

  const int threads_;
  std::vector<std::thread> workers_;

  // The loop being run. Written by the caller before `generation_` moves on, read by workers after.
  Call call_ = nullptr;
  void* context_ = nullptr;
  int64_t tasks_ = 0;

  alignas(64) std::atomic<uint64_t> generation_{0};
  alignas(64) std::atomic<int64_t> next_task_{0};
  alignas(64) std::atomic<int> busy_workers_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int> parked_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace tinyvllm
