// A fixed team of threads that runs one parallel loop at a time. The caller works too, so a pool of
// one thread starts none. Between two loops workers spin for a moment, because the next op of a
// step follows within microseconds, and then park: an idle engine uses no CPU.
//
// The caller waits for tasks, not for threads: a worker that is parked, late or without a core is
// not missed, its share is taken by whoever is there. Results never depend on who ran which task;
// the numerics contract leans on that.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace tinyvllm {

// Physical cores that this process may use: its affinity mask and cgroup quota counted in.
int default_thread_count();

// What a loop cost, for those who watch: how long each thread was busy with its tasks. The rest of
// the loop's time it was late or waited for the others.
struct ThreadTime {
  int64_t busy_ns = 0;
  int64_t tasks = 0;
};
struct LoopTimes {
  const char* what = "";  // a literal
  int64_t tasks = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<ThreadTime> threads;
};
class LoopWatch {
 public:
  virtual ~LoopWatch() = default;
  virtual void loop_done(LoopTimes&& times) = 0;  // on the caller's thread
};

// Work that can wait, for a thread that does.
class SpareWork {
 public:
  virtual ~SpareWork() = default;
  // Asks after every piece of well under a microsecond; false: there was none.
  virtual bool do_some(const std::function<bool()>& still_waiting) = 0;
};

class ThreadPool {
 public:
  // `spare`, if any, is done by a worker that has waited for the next loop for a while. Outlives
  // the pool.
  explicit ThreadPool(int threads, SpareWork* spare = nullptr);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return threads_; }

  // Calls body(task, thread) for every task in [0, tasks), tasks handed out in ascending order, and
  // returns when all are done. Not reentrant; one caller at a time. `what` tells loops apart in a
  // trace.
  template <class Body>
  void parallel_for(int64_t tasks, Body&& body, const char* what = "tiles") {
    using Plain = std::remove_reference_t<Body>;
    const Call call = [](void* context, int64_t task, int thread) {
      (*static_cast<Plain*>(context))(task, thread);
    };
    void* const context = const_cast<void*>(static_cast<const void*>(&body));
    if (watch_ == nullptr) {
      run(tasks, call, context);
    } else {
      run_watched(tasks, call, context, what);
    }
  }

  // Whoever is to be told of every loop, until told otherwise; null: nobody. The caller's to set.
  void watch(LoopWatch* watch) { watch_ = watch; }

 private:
  using Call = void (*)(void* context, int64_t task, int thread);
  void run(int64_t tasks, Call call, void* context);
  void run_watched(int64_t tasks, Call call, void* context, const char* what);
  void work(int thread);
  void spin(uint64_t seen, SpareWork* spare);
  void take_tasks(int thread);
  void park(uint64_t seen);

  const int threads_;
  SpareWork* const spare_;
  LoopWatch* watch_ = nullptr;
  std::vector<std::thread> workers_;

  // The loop in progress: its number and the next task to hand out, in one word, so that a task can
  // only be taken from the loop whose fields below were read (compare-and-swap). Between loops the
  // word says that nothing is left.
  alignas(64) std::atomic<uint64_t> next_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<uint32_t> tasks_{0};

  alignas(64) std::atomic<uint32_t> finished_{0};  // tasks of this loop
  alignas(64) std::atomic<int> parked_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace tinyvllm
