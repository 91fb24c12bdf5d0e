// CHECK: for bugs, never for input. A failed check prints what was expected and aborts; whatever a
// file, flag, model or client can cause is a Result instead (result.h).
#pragma once

#include <sstream>
#include <string>

namespace tinyvllm {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

// Collects the message of a failing CHECK; its destructor does not return.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition)
      : file_(file), line_(line), condition_(condition) {}
  ~CheckFailure() { check_failed(file_, line_, condition_, message_.str()); }
  template <class T>
  CheckFailure& operator<<(const T& value) {
    message_ << value;
    return *this;
  }

 private:
  const char* file_;
  int line_;
  const char* condition_;
  std::ostringstream message_;
};

}  // namespace tinyvllm

#define CHECK(condition)      \
  if (condition) [[likely]] { \
  } else /* NOLINT */         \
    ::tinyvllm::CheckFailure(__FILE__, __LINE__, #condition)
