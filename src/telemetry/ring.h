// A queue from one thread to one other, of a fixed number of places: putting something in never
// waits, never locks and never allocates. When it is full the newest is dropped and counted.
// Places are memory that nobody has touched until they are first used.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace tinyvllm {

template <class T>
class Ring {
 public:
  explicit Ring(size_t places) : mask_(places - 1), places_(new Place[places]) {}  // a power of two
  ~Ring() {
    drain([](T&&) {});
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // The one thread's side: a T{arguments…}, made where it lies.
  template <class... Arguments>
  void emplace(Arguments&&... arguments) {
    const size_t end = end_.load(std::memory_order_relaxed);
    if (end - known_begin_ > mask_) {
      known_begin_ = begin_.load(std::memory_order_acquire);
      if (end - known_begin_ > mask_) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    }
    new (places_[end & mask_].bytes) T{std::forward<Arguments>(arguments)...};
    end_.store(end + 1, std::memory_order_release);
    fetch(places_[(end + 1) & mask_]);
  }

  // The other's: hands over what is there now, oldest first, `most` at most, and says how many.
  template <class Take>
  size_t drain(Take&& take, size_t most = SIZE_MAX) {
    const size_t begin = begin_.load(std::memory_order_relaxed);
    const size_t end = begin + std::min(most, end_.load(std::memory_order_acquire) - begin);
    for (size_t i = begin; i != end; ++i) {
      T* value = std::launder(reinterpret_cast<T*>(places_[i & mask_].bytes));
      take(std::move(*value));
      std::destroy_at(value);
      begin_.store(i + 1, std::memory_order_release);
    }
    return end - begin;
  }
  uint64_t take_dropped() { return dropped_.exchange(0, std::memory_order_relaxed); }

 private:
  struct Place {
    alignas(T) unsigned char bytes[sizeof(T)];
  };
  // A ring is larger than a cache: by the time the next one is put in, its place is here.
  static void fetch(const Place& place) {
    for (size_t at = 0; at < sizeof(Place); at += 64) __builtin_prefetch(place.bytes + at, 1);
  }

  const size_t mask_;
  const std::unique_ptr<Place[]> places_;
  alignas(64) std::atomic<size_t> end_{0};  // written by the one
  size_t known_begin_ = 0;  // the one's last look at `begin_`, whose line is mostly the other's
  std::atomic<uint64_t> dropped_{0};
  alignas(64) std::atomic<size_t> begin_{0};  // written by the other
};

}  // namespace tinyvllm
