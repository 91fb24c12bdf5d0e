// The card's linears against the reference, at the cases that the CPU's are tested
// at. Activations are halves there: x, its normalised form and y are each rounded to 11 bits, so a
// product is off by 2^-10 of Σ|w·x|, quantized scales by another 2^-11; sums themselves are float.
#include <cstring>
#include <gtest/gtest.h>

#include "ops/cuda/weights.h"
#include "ops/embedding.h"
#include "ops/finite.h"
#include "ops/linear.h"
#include "ops/reference/dequantize.h"
#include "ops/reference/ops.h"
#include "ops/softmax.h"
#include "tests/ops/cases.h"
#include "tests/ops/cuda_harness.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

TEST_F(CudaTest, LinearsAgreeWithReference) {
  std::vector<LinearCase> cases = kLinearCases;
  cases.push_back({4, 96, 512});
  cases.push_back({8, 64, 2048});
  for (const int64_t rows : {33, 64, 41}) cases.push_back({rows, 200, 512});  // of one bucket
  for (const DType dtype : kWeightTypes) {
    for (const LinearCase& c : cases) {
      const int block = dtype_info(dtype).block_elements;
      const Weights w = random_weights(dtype, c.out, (c.in + block - 1) / block * block, 1);
      const Matrix bias = random_matrix(1, c.out, 2);
      Matrix x = random_matrix(c.tokens, w.in, 3, 1, 3);
      for (float& v : x.values) v = f16_to_f32(f32_to_f16(v));
      Matrix y(c.tokens, c.out, 2);
      Matrix sum = random_matrix(c.tokens, c.out, 4);
      const Matrix before = sum;
      const TensorView view = w.view();
      const TensorView bias_view{bias.values.data(), DType::kF32, Shape{c.out}};
      // One shares its matrix with an embedding, which is gone before it is used.
      const Linear plain =
          make_linear(*device_, pool_,
                      {.weights = {&view, 1},
                       .biases = {},
                       .on_device = make_embedding(*device_, view).value().on_device})
              .value();
      const Linear biased = make_linear(*device_, pool_, {{&view, 1}, {&bias_view, 1}}).value();
      const OnCard xs = upload(x, DType::kF16);
      const OnCard ys = upload(y, DType::kF16);
      const OnCard sums = upload(sum, DType::kF32);
      run([&](ExecContext& ctx) {
        linear(ctx, plain, xs.tensor, ys.tensor);
        linear_add(ctx, biased, xs.tensor, sums.tensor);
      });
      download(ys, y);
      download(sums, sum);
      std::vector<float> expected(static_cast<size_t>(c.out));
      std::vector<float> row(static_cast<size_t>(w.in));
      for (int64_t t = 0; t < c.tokens; ++t) {
        reference::linear(dtype, w.bytes.data(), c.out, w.in, x.row(t), expected.data());
        for (int64_t r = 0; r < c.out; ++r) {
          reference::dequantize(dtype,
                                w.bytes.data() + static_cast<size_t>(r) * row_bytes(dtype, w.in),
                                w.in, row.data());
          float products = 0;
          for (size_t i = 0; i < row.size(); ++i) products += std::fabs(row[i] * x.row(t)[i]);
          const float value = expected[static_cast<size_t>(r)];
          // Weights that are rounded to halves, or whose scale and min are (several times a
          // value's size), and then the result itself.
          const float tolerance = kHalf * (16 * products + std::fabs(value)) + 1e-6f;
          const std::string where = str_cat(dtype_name(dtype), " [", c.tokens, ", ", c.out, ", ",
                                            w.in, "] at ", t, ", ", r);
          expect_close(y.row(t)[r], value, tolerance, where);
          expect_close(sum.row(t)[r], before.row(t)[r] + bias.row(0)[r] + value, tolerance, where);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Numbers of rows that share an algorithm: nothing is computed past the last one.
TEST_F(CudaTest, ProductsLeaveOtherRowsAlone) {
  constexpr int64_t kRows = 64, kOut = 200, kIn = 512;
  const Weights w = random_weights(DType::kF16, kOut, kIn, 1);
  const TensorView view = w.view();
  const Linear linear = make_linear(*device_, pool_, {{&view, 1}, {}}).value();
  const OnCard x = upload(random_matrix(kRows, kIn, 2), DType::kF16);
  const Matrix before = random_matrix(kRows, kOut, 3);
  for (const int64_t rows : {33, 64, 41}) {
    OnCard sums = upload(before, DType::kF32);
    Tensor part = x.tensor;
    part.rows = sums.tensor.rows = rows;
    run([&](ExecContext& ctx) { linear_add(ctx, linear, part, sums.tensor); });
    Matrix sum = before;
    download(sums, sum);
    for (int64_t t = 0; t < kRows; ++t) {
      const bool same = std::equal(sum.row(t), sum.row(t) + kOut, before.row(t));
      ASSERT_EQ(same, t >= rows) << "row " << t << " of " << rows;
    }
  }
}

// More than pinned memory and what arrives on the card hold at a time, so that both are used again.
TEST_F(CudaTest, UploadsAreWholeWhenTheirWayIsUsedAgain) {
  constexpr int64_t kOut = 8192, kIn = 4096, kMatrices = 5;
  std::vector<uint16_t> numbers(static_cast<size_t>((kOut + kMatrices) * kIn));
  uint32_t state = 1;
  for (uint16_t& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = f32_to_bf16(static_cast<float>(state >> 25));
  }
  // The card is busy with one long row at first, so that uploads pile up before it.
  const Buffer row = device_->allocate(size_t{1} << 27, "a test").value();
  const Tensor busy(row.data(), DType::kF32, 1, int64_t{1} << 25);
  Arena none;
  ExecContext ctx{*device_, pool_, none, {}};
  softmax(ctx, busy, busy);
  std::vector<Linear> linears;
  const auto view_of = [&](int64_t first) {  // a row later each time
    return TensorView{numbers.data() + first * kIn, DType::kBF16, Shape{kOut, kIn}};
  };
  for (int64_t i = 0; i < kMatrices; ++i) {
    const TensorView view = view_of(i);
    linears.push_back(make_linear(*device_, pool_, {{&view, 1}, {}}).value());
  }
  std::vector<uint16_t> halves(static_cast<size_t>(kOut * kIn));
  for (int64_t i = 0; i < kMatrices; ++i) {
    const Buffer& memory = *cuda::weights_of(linears[static_cast<size_t>(i)]).parts[0].memory;
    ASSERT_TRUE(device_->download(halves.data(), memory.data(), halves.size() * 2).ok());
    const auto* from = static_cast<const uint16_t*>(view_of(i).data);
    int64_t wrong = 0;
    for (size_t j = 0; j < halves.size(); ++j) {
      wrong += f16_to_f32(halves[j]) == bf16_to_f32(from[j]) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0) << "of matrix " << i;
  }
}

// Every place of a row in turn becomes what an infinity or a NaN looks like: the card refuses the
// rows that the host does, and knows them by their address.
TEST_F(CudaTest, FindsTheRowsThatAreNoNumbers) {
  constexpr int64_t kRow = 3;
  ThreadPool pool(2);
  for (const DType dtype : kWeightTypes) {
    const Weights good = random_weights(dtype, 5, 256, 1);
    const size_t bytes = row_bytes(dtype, 256);
    int found = 0;
    for (size_t at = 0; at + 2 <= bytes; at += 2) {
      Weights bad = good;
      const uint16_t pattern = at % 4 == 0 ? 0xFE01 : 0xFFC0;
      std::memcpy(bad.bytes.data() + kRow * bytes + at, &pattern, sizeof pattern);
      const TensorView view = bad.view();
      const auto row = find_not_finite(pool, view);
      ASSERT_TRUE(make_linear(*device_, pool_, {{&view, 1}, {}}).ok());
      const void* expected = row ? bad.bytes.data() + kRow * bytes : nullptr;
      ASSERT_EQ(first_not_finite(*device_).value(), expected)
          << dtype_name(dtype) << " byte " << at;
      found += row ? 1 : 0;
    }
    EXPECT_GT(found, 0) << dtype_name(dtype);
  }
}

// Tensors that travel together and are looked at together, as a model's are: the bad one is known
// wherever it stands, and of two the one that the host has first.
TEST_F(CudaTest, FindsTheBadTensorAmongMany) {
  const auto device = CudaDevice::create({}).value();
  constexpr size_t kTensors = 45;
  std::vector<Weights> all;
  for (size_t i = 0; i < kTensors; ++i) {
    const DType dtype = kWeightTypes[i % kWeightTypes.size()];
    all.push_back(random_weights(dtype, 1 + static_cast<int64_t>(i * 37 % 128), 512, 1));
  }
  const auto last_row = [&](size_t i) {
    return all[i].bytes.data() + all[i].bytes.size() - row_bytes(all[i].dtype, 512);
  };
  const auto found = [&] {
    std::vector<Linear> linears;
    for (const Weights& w : all) {
      const TensorView view = w.view();
      linears.push_back(make_linear(*device, pool_, {{&view, 1}, {}}).value());
    }
    return first_not_finite(*device).value();
  };
  ASSERT_EQ(found(), nullptr);
  for (size_t i = 0; i < kTensors; ++i) {
    const std::vector<uint8_t> good = all[i].bytes;
    std::memset(last_row(i), 0xFF, row_bytes(all[i].dtype, 512));
    ASSERT_EQ(found(), last_row(i)) << i;
    std::memcpy(all[i].bytes.data(), good.data(), good.size());
  }
  for (const size_t i : {size_t{3}, size_t{40}}) {
    std::memset(last_row(i), 0xFF, row_bytes(all[i].dtype, 512));
  }
  EXPECT_EQ(found(), std::min<const void*>(last_row(3), last_row(40)));
}

}  // namespace
}  // namespace tinyvllm::ops
