// Result<T>: a value, or words about what went wrong. For everything that a file, a flag, a model
// or a client can cause; the message names the offending key, tensor or field and what would be
// right.
//
//   Result<int> parse(std::string_view text) {
//     if (text.empty()) return error("port: expected a number, found nothing");
//     TRY_ASSIGN(const int value, to_int(text));
//     return value;
//   }
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/strings.h"

namespace tinyvllm {

struct Error {
  std::string message;
};

template <class... Parts>
Error error(const Parts&... parts) {
  return Error{str_cat(parts...)};
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
    CHECK(ok()) << "value of a failed result: " << message_;
    return *value_;
  }
  const T& value() const& {
    CHECK(ok()) << "value of a failed result: " << message_;
    return *value_;
  }
  T&& value() && {
    CHECK(ok()) << "value of a failed result: " << message_;
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

#define TINYVLLM_JOIN_(a, b) a##b
#define TINYVLLM_JOIN(a, b) TINYVLLM_JOIN_(a, b)
#define TINYVLLM_TRY_ASSIGN(temporary, declaration, expression) \
  auto temporary = (expression);                                \
  if (!temporary.ok()) return temporary.error();                \
  declaration = std::move(temporary).value()

// TRY(status); TRY_ASSIGN(auto value, result): return the error to our own caller, or go on.
#define TRY(expression) \
  if (auto try_status = (expression); !try_status.ok()) return try_status.error()
#define TRY_ASSIGN(declaration, expression) \
  TINYVLLM_TRY_ASSIGN(TINYVLLM_JOIN(try_result_, __LINE__), declaration, expression)
