// What a running template may use up, and the error that stops it. Every loop, call, copy and
// comparison of the interpreter draws on a Sandbox, so a hostile template ends in an error instead
// of a hang, an overflowing stack or an exhausted machine.
//
// Inside src/text/template errors are thrown, as in the language being interpreted. Nothing thrown
// leaves the folder: Template::compile and Template::render (template.h) return a Result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace tinyvllm::jinja {

struct Limits {
  uint64_t steps = 50'000'000;       // about two seconds
  size_t memory_bytes = 256u << 20;  // values made while rendering
  size_t output_bytes = 64u << 20;   // rendered text
  int depth = 1000;                  // nested evaluations: macros, expressions, printed values
  int syntax_depth = 200;            // nested brackets and blocks in the source
  size_t source_bytes = 4u << 20;
};

// A place in the template's source, counted from 1, columns in characters.
struct Position {
  uint32_t line = 0;
  uint32_t column = 0;
};

struct TemplateError {
  std::string message;
  Position at{};         // line 0: not yet known
  std::string source{};  // the expression or tag that failed, as the template spells it
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw TemplateError{str_cat(parts...)};
}

// Values live in a heap that only grows and is dropped whole: no ownership to track between values
// that may refer to each other in circles, and the limit on memory is the heap's size.
class Heap {
 public:
  explicit Heap(size_t limit) : limit_(std::min(limit, kMostBytes)) {}
  Heap(Heap&&) = default;
  Heap& operator=(Heap&&) = default;

  void* allocate(size_t bytes);

  // Fails now if `bytes` more could not be allocated; for work that builds outside the heap first.
  void require(size_t bytes) const {
    if (bytes > limit_ - used_) out_of_memory();
  }

  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>, "the heap runs no destructors");
    return new (allocate(sizeof(T))) T{std::forward<Args>(args)...};
  }
  template <class T>
  T* array(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>, "the heap runs no destructors");
    if (count == 0) return nullptr;
    if (count > limit_ / sizeof(T)) out_of_memory();
    return new (allocate(count * sizeof(T))) T[count];
  }
  // A copy of the characters that lives as long as the heap.
  std::string_view copy(std::string_view text);

  size_t used() const { return used_; }

 private:
  // Offsets in strings are 32 bits.
  static constexpr size_t kMostBytes = 0xFFFF0000u;

  [[noreturn]] void out_of_memory() const;

  size_t limit_;
  size_t used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* free_ = nullptr;
  size_t room_ = 0;
};

class Sandbox {
 public:
  Sandbox(const Limits& limits, const std::tm& now)
      : limits_(limits), now_(now), heap_(limits.memory_bytes), steps_left_(limits.steps) {}

  const Limits& limits() const { return limits_; }
  const std::tm& now() const { return now_; }
  Heap& heap() { return heap_; }

  void charge(uint64_t steps) {
    if (steps > steps_left_) out_of_steps();
    steps_left_ -= steps;
  }
  // Work that runs over bytes at memory speed.
  void charge_bytes(size_t bytes) { charge(1 + bytes / 64); }

 private:
  friend class Nesting;
  [[noreturn]] void out_of_steps() const;
  [[noreturn]] void too_deep() const;

  const Limits limits_;
  const std::tm now_;
  Heap heap_;
  uint64_t steps_left_;
  int depth_ = 0;
};

// One level of recursion, while it lives.
class Nesting {
 public:
  explicit Nesting(Sandbox& sandbox) : sandbox_(sandbox) {
    if (sandbox_.depth_ >= sandbox_.limits_.depth) sandbox_.too_deep();
    sandbox_.depth_ += 1;
  }
  ~Nesting() { sandbox_.depth_ -= 1; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Sandbox& sandbox_;
};

}  // namespace tinyvllm::jinja
