#include "io/touch_ahead.h"

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread_pool.h"

namespace tinyvllm {
namespace {

constexpr int kMostThreads = 4;
// The kernel notes so much around a page that is read, if it is in memory.
constexpr uintptr_t kAround = uintptr_t{64} << 10;

bool is_in_memory(uintptr_t address) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char answer = 0;
  return mincore(reinterpret_cast<void*>(address / page * page), 1, &answer) == 0 && answer & 1;
}

}  // namespace

TouchAhead::TouchAhead(const WeightSource& weights) : tensors_(weights.tensors()) {
  const int threads = std::min(kMostThreads, default_thread_count());
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { touch(); });
}

TouchAhead::~TouchAhead() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
}

void TouchAhead::touch() {
  while (true) {
    const size_t tensor = next_++;
    if (tensor >= tensors_.size()) return;
    const TensorView& view = tensors_[tensor].view;
    const auto begin = reinterpret_cast<uintptr_t>(view.data);
    for (uintptr_t at = begin; at < begin + view.bytes(); at = (at / kAround + 1) * kAround) {
      if (stopping_.load(std::memory_order_relaxed)) return;
      if (is_in_memory(at)) (void)*reinterpret_cast<const volatile char*>(at);
    }
  }
}

}  // namespace tinyvllm
