// Result<T>: a value, or words about what went wrong. For everything that a file, a flag, a model
// or a request can cause; the message names the offending key, tensor or field and what would be
// right. Nothing here throws.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace tinyvllm {

struct Error {
  std::string message;
};

[[noreturn]] inline void value_of_failed_result(const std::string& message) {
  std::fprintf(stderr, "value of a failed result: %s\n", message.c_str());
  std::abort();
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                // NOLINT: a value is a result
  Result(Error error) : message_(std::move(error.message)) {}  // NOLINT: and so is an error

  bool ok() const { return value_.has_value(); }
  const std::string& message() const { return message_; }
  Error error() const { return Error{message_}; }

  T& value() & {
    if (!ok()) value_of_failed_result(message_);
    return *value_;
  }
  const T& value() const& {
    if (!ok()) value_of_failed_result(message_);
    return *value_;
  }
  T&& value() && {
    if (!ok()) value_of_failed_result(message_);
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  std::string message_;
};

// A result with nothing in it but success: `return Status();` or `return error(…);`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), message_(std::move(error.message)) {}  // NOLINT

  bool ok() const { return !failed_; }
  const std::string& message() const { return message_; }
  Error error() const { return Error{message_}; }

 private:
  bool failed_ = false;
  std::string message_;
};
using Status = Result<void>;

}  // namespace tinyvllm
