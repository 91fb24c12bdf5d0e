// Views of tensors: a pointer, a dtype and a shape, owning nothing. Shapes are row-major and
// written outermost first, so a weight of a linear layer is [out, in] and activations are [tokens,
// width].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/dtype.h"

namespace tinyvllm {

constexpr int kMaxRank = 5;  // convolutions over video patches have five

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

  size_t bytes() const {
    return row_bytes(dtype, shape.row_elements()) * static_cast<size_t>(shape.rows());
  }
};

// Read and write: activations in a device's arena. A matrix whose rows may lie apart, so that Q, K
// and V can be columns of one tensor.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from one row to the next

  Tensor() = default;
  Tensor(void* where, DType type, int64_t num_rows, int64_t num_cols)
      : data(where), dtype(type), rows(num_rows), cols(num_cols), stride(num_cols) {}

  // A view of `count` columns from `begin` on. Only of types whose block is one element.
  Tensor columns(int64_t begin, int64_t count) const {
    CHECK(!is_quantized(dtype) && begin + count <= cols) << begin << "+" << count << " of " << cols;
    Tensor view = *this;
    if (data != nullptr) view.data = static_cast<char*>(data) + row_bytes(dtype, begin);
    view.cols = count;
    return view;
  }
  Tensor row_range(int64_t begin, int64_t count) const {
    CHECK(begin + count <= rows) << begin << "+" << count << " of " << rows;
    Tensor view = *this;
    if (data != nullptr) {
      view.data = static_cast<char*>(data) + row_bytes(dtype, stride) * static_cast<size_t>(begin);
    }
    view.rows = count;
    return view;
  }
  float* f32() const {
    CHECK(dtype == DType::kF32) << "a float tensor, found " << dtype_name(dtype);
    return static_cast<float*>(data);
  }
};

}  // namespace tinyvllm
