// How weights get onto the card: whole, whatever piles up on the way, and what is no number among
// them is found there.
#include <cstring>
#include <gtest/gtest.h>

#include "ops/cuda/weights.h"
#include "ops/finite.h"
#include "ops/linear.h"
#include "ops/softmax.h"
#include "tests/ops/cases.h"
#include "tests/ops/cuda_harness.h"

namespace tinyvllm::ops {
namespace {

// What tests take for a card's weights is what the file says, but for one rounding of each number,
// or of scale and minimum, which together are no more than four times the largest weight.
TEST(WeightsOnCard, AreTheFilesButForRoundings) {
  for (const DType dtype : kWeightTypes) {
    const Weights w = random_weights(dtype, 8, 512, 1);
    const std::vector<float> file = floats_of(w);
    const std::vector<float> card = on_card(w);
    const float most = 4 * kHalf * largest(file.data(), w.out * w.in);
    size_t same = 0;
    for (size_t i = 0; i < file.size(); ++i) {
      ASSERT_NEAR(card[i], file[i], most) << dtype_name(dtype) << " at " << i;
      same += card[i] == file[i] ? 1 : 0;
    }
    const bool exact = dtype == DType::kF16 || dtype_info(dtype).block_elements == 32;
    if (exact) {
      EXPECT_EQ(same, file.size()) << dtype_name(dtype);
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
