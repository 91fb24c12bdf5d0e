// Views of tensors: a pointer, a dtype and a shape, owning nothing. Shapes are row-major and written
// outermost first, so a weight of a linear layer is [out, in] and activations are [tokens, width].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/dtype.h"

namespace tinyvllm {

constexpr int kMaxRank = 4;

struct Shape {
  int rank = 0;
  std::array<int64_t, kMaxRank> dims{};

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) {
    CHECK(sizes.size() <= kMaxRank) << "rank " << sizes.size();
    for (const int64_t size : sizes) dims[static_cast<size_t>(rank++)] = size;
  }
  int64_t operator[](int i) const { return dims[static_cast<size_t>(i)]; }
  int64_t elements() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= dims[static_cast<size_t>(i)];
    return product;
  }
  int64_t row_elements() const { return rank == 0 ? 1 : dims[static_cast<size_t>(rank - 1)]; }
  int64_t rows() const { return row_elements() == 0 ? 0 : elements() / row_elements(); }
  bool operator==(const Shape&) const = default;
};

std::string to_string(const Shape& shape);  // "[576, 1536]"

// Read-only: weights, wherever they lie (a file's map, a buffer).
struct TensorView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  size_t bytes() const { return row_bytes(dtype, shape.row_elements()) * static_cast<size_t>(shape.rows()); }
};

// Read and write: activations in a device's arena.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  int64_t rows() const { return shape.rows(); }
  int64_t cols() const { return shape.row_elements(); }
  float* f32() const {
    CHECK(dtype == DType::kF32) << "a float tensor, found " << dtype_name(dtype);
    return static_cast<float*>(data);
  }
};

}  // namespace tinyvllm
