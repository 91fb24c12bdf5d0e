// Of floats every number is looked at, of quantized blocks the half-float scales: everything else
// in them is an integer. A pass at memory speed, over pages that loading touches anyway.
#include "ops/finite.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "ops/block_scales.h"
#include "ops/cuda/ops.h"

namespace tinyvllm::ops {
namespace {

constexpr int64_t kTaskBytes = 1 << 20;

// An exponent of all ones is a NaN or an infinity.
constexpr int32_t kF32Exponent = 0x7F800000;
constexpr int16_t kF16Exponent = 0x7C00;
constexpr int16_t kBF16Exponent = 0x7F80;

// The largest exponent, without a branch in the loop: compilers vectorise it.
template <class Bits>
bool finite(const char* data, int64_t n, Bits exponent) {
  Bits top = 0;
  for (int64_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof bits), sizeof bits);
    top = std::max(top, static_cast<Bits>(bits & exponent));
  }
  return top != exponent;
}

bool finite_blocks(const char* data, int64_t blocks, int64_t bytes, const BlockScales& scales) {
  bool good = true;
  for (int64_t b = 0; b < blocks; ++b, data += bytes) {
    good &= finite(data + scales.scale, 1, kF16Exponent);
    if (scales.min >= 0) good &= finite(data + scales.min, 1, kF16Exponent);
  }
  return good;
}

bool finite_row(DType dtype, const char* row, int64_t n) {
  switch (dtype) {
    case DType::kF32:
      return finite(row, n, kF32Exponent);
    case DType::kF16:
      return finite(row, n, kF16Exponent);
    case DType::kBF16:
      return finite(row, n, kBF16Exponent);
    default:
      break;
  }
  const BlockScales scales = block_scales(dtype);
  const DTypeInfo& info = dtype_info(dtype);
  return scales.scale < 0 || finite_blocks(row, n / info.block_elements, info.block_bytes, scales);
}

}  // namespace

std::optional<int64_t> find_not_finite(ThreadPool& pool, const TensorView& view) {
  const int64_t rows = view.shape.rows();
  const int64_t columns = view.shape.row_elements();
  const auto stride = static_cast<int64_t>(row_bytes(view.dtype, columns));
  if (rows <= 0 || stride <= 0) return std::nullopt;
  const int64_t chunk = std::max<int64_t>(1, kTaskBytes / stride);
  std::atomic<int64_t> first = rows;
  pool.parallel_for((rows + chunk - 1) / chunk, [&](int64_t task, int) {
    const int64_t end = std::min(rows, (task + 1) * chunk);
    for (int64_t r = task * chunk; r < end; ++r) {
      if (finite_row(view.dtype, static_cast<const char*>(view.data) + r * stride, columns))
        continue;
      int64_t before = first.load();
      while (r < before && !first.compare_exchange_weak(before, r)) {
      }
      return;
    }
  });
  if (first == rows) return std::nullopt;
  return first.load();
}

std::optional<int64_t> find_not_finite(const Device& device, ThreadPool& pool,
                                       const TensorView& view) {
  if (device.kind() == DeviceKind::kCuda && view.shape.rank > 1) return std::nullopt;
  return find_not_finite(pool, view);
}

Result<const void*> first_not_finite(Device& device) {
  if (device.kind() == DeviceKind::kCuda) return cuda::first_not_finite(device);
  return nullptr;
}

}  // namespace tinyvllm::ops
