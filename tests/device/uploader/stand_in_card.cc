#include "tests/device/uploader/stand_in_card.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <cuda_runtime_api.h>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

struct CUstream_st {
  void enqueue(std::function<void()> work) {
    {
      const std::scoped_lock lock(mutex);
      queue.push_back(std::move(work));
    }
    changed.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return is_over || !queue.empty(); });
      if (queue.empty()) return;
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;  // under the mutex, like what follows
  bool is_over = false;
  std::thread thread{[this] { run(); }};
};

namespace {

// Of all events, whose records are numbered.
std::mutex event_mutex;
std::condition_variable event_passed;
std::atomic<int> copies_left = -1;

}  // namespace

struct CUevent_st {
  int recorded = 0;  // under event_mutex
  int passed = 0;
};

namespace tinyvllm {

void refuse_copy_after(int copies) { copies_left = copies; }

}  // namespace tinyvllm

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  *stream = new CUstream_st;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::scoped_lock lock(stream->mutex);
    stream->is_over = true;
  }
  stream->changed.notify_all();
  stream->thread.join();
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = new CUevent_st;
  return cudaSuccess;
}

// Streams may still be about to pass it, and tests are short.
cudaError_t cudaEventDestroy(cudaEvent_t /*event*/) { return cudaSuccess; }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::scoped_lock lock(event_mutex);
  const int number = ++event->recorded;
  stream->enqueue([event, number] {
    {
      const std::scoped_lock passing(event_mutex);
      event->passed = number;
    }
    event_passed.notify_all();
  });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::scoped_lock lock(event_mutex);
  return event->passed == event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  std::unique_lock lock(event_mutex);
  event_passed.wait(lock, [&] { return event->passed == event->recorded; });
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const std::scoped_lock lock(event_mutex);
  stream->enqueue([event, number = event->recorded] {
    std::unique_lock waiting(event_mutex);
    event_passed.wait(waiting, [&] { return event->passed >= number; });
  });
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  if (copies_left >= 0 && copies_left-- == 0) return cudaErrorUnknown;
  stream->enqueue([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t /*status*/) { return "refused"; }

}  // extern "C"
