// The element types of tensors. A quantized type stores a row as blocks of a fixed number of
// elements in a fixed number of bytes; for the others a block is one element. The numbers are those
// that GGUF files store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tinyvllm {

enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

struct DTypeInfo {
  DType dtype;
  const char* name;  // as ggml spells it: "Q4_K"
  int block_elements;
  int block_bytes;
};

const DTypeInfo& dtype_info(DType dtype);
inline const char* dtype_name(DType dtype) { return dtype_info(dtype).name; }

// Quantized types are those whose blocks hold several elements.
inline bool is_quantized(DType dtype) { return dtype_info(dtype).block_elements > 1; }

std::optional<DType> dtype_from_id(uint32_t id);              // the number in a GGUF file
std::optional<DType> dtype_from_name(std::string_view name);  // any case

// Bytes of one row; `elements` must be a multiple of the block.
inline size_t row_bytes(DType dtype, int64_t elements) {
  const DTypeInfo& info = dtype_info(dtype);
  return static_cast<size_t>(elements / info.block_elements) *
         static_cast<size_t>(info.block_bytes);
}

}  // namespace tinyvllm
