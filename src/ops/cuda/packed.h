// How weights lie on the card. Floats are halves. Quantized rows are cut into planes, each of which
// is read with whole, aligned loads: low four bits, the bits above them, and scales, so that
//   w = scale · code + min
// whatever type the file had. Codes of 32 columns are one load: byte j of the low plane holds
// columns j and j + 16.
#pragma once

#include <cstdint>

namespace tinyvllm::ops::cuda {

enum class Form {
  kHalf,  // in halves, rows rounded up to 8
  k8,     // signed bytes
  k4,     // nibbles
  k5,     // nibbles and one bit above: a word per 32 columns
  k6,     // nibbles and two bits above: two words per 32 columns
};

struct Packed {
  Form form = Form::kHalf;
  int64_t out = 0;
  int64_t in = 0;              // columns of the matrix
  int64_t stride = 0;          // columns from row to row: `in` rounded up so that rows stay aligned
  int group = 32;              // columns that share a scale and a min: 16 or 32
  const void* low = nullptr;   // [out, stride] halves or bytes, or [out, stride / 2] bytes
  const void* high = nullptr;  // [out, stride / 32] words or pairs of words
  const void* scales = nullptr;  // [out, stride / group] (scale, min) as two halves
};

// Bytes of a plane's row.
inline int64_t low_bytes(const Packed& p) {
  return p.form == Form::kHalf ? p.stride * 2 : p.form == Form::k8 ? p.stride : p.stride / 2;
}
inline int64_t high_bytes(const Packed& p) {
  return p.form == Form::k5 ? p.stride / 8 : p.form == Form::k6 ? p.stride / 4 : 0;
}
inline int64_t scale_bytes(const Packed& p) {
  return p.form == Form::kHalf ? 0 : p.stride / p.group * 4;
}

// Rows [begin, begin + count) of a matrix.
inline Packed rows_of(const Packed& p, int64_t begin, int64_t count) {
  const auto at = [&](const void* plane, int64_t bytes) -> const void* {
    return plane == nullptr ? nullptr : static_cast<const char*>(plane) + begin * bytes;
  };
  Packed part = p;
  part.out = count;
  part.low = at(p.low, low_bytes(p));
  part.high = at(p.high, high_bytes(p));
  part.scales = at(p.scales, scale_bytes(p));
  return part;
}

}  // namespace tinyvllm::ops::cuda
