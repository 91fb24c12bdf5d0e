// Making results (tinyvllm/result.h) and handing their errors on.
//
//   Result<int> parse(std::string_view text) {
//     if (text.empty()) return error("port: expected a number, found nothing");
//     TRY_ASSIGN(const int value, to_int(text));
//     return value;
//   }
#pragma once

#include "base/check.h"
#include "base/strings.h"
#include "tinyvllm/result.h"

namespace tinyvllm {

template <class... Parts>
Error error(const Parts&... parts) {
  return Error{str_cat(parts...)};
}

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
