// Rows as a file has them, on the card and not yet looked at.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace tinyvllm {

struct UploadedRows {
  DType dtype = DType::kF16;
  const char* data = nullptr;  // aligned to 16
  int64_t bytes = 0;
  int64_t row_bytes = 0;
  uint64_t host = 0;  // where the host has them
};

}  // namespace tinyvllm
