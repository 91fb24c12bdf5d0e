// Runs ops on a card: matrices go up as floats or halves and come back, scratch is measured first.
// Where there is no card, tests are skipped.
#pragma once

#include <gtest/gtest.h>

#include "device/cuda/cuda_device.h"
#include "tests/ops/bounded.h"

namespace tinyvllm::ops {

// More than a grid's second and third dimension have room for, and the rows worth looking at.
constexpr int64_t kManyRows = 70000;
constexpr int64_t kRowsOfMany[] = {0, 1, 65534, 65535, 65536, kManyRows - 1};

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = CudaDevice::create({.deterministic = deterministic_, .separate_buffers = true});
    if (!device.ok()) GTEST_SKIP() << device.message();
    device_ = std::move(device.value());
  }

  // A matrix on the card: floats, or halves.
  struct OnCard {
    Buffer buffer;
    Tensor tensor;
  };
  OnCard upload(const Matrix& m, DType dtype) {
    std::vector<uint8_t> bytes(row_bytes(dtype, m.stride) * static_cast<size_t>(m.rows));
    for (int64_t i = 0; i < m.rows * m.stride; ++i) {
      const float v = m.values[static_cast<size_t>(i)];
      if (dtype == DType::kF16) {
        reinterpret_cast<uint16_t*>(bytes.data())[i] = f32_to_f16(v);
      } else {
        reinterpret_cast<float*>(bytes.data())[i] = v;
      }
    }
    OnCard on{device_->allocate(bytes.size(), "a test").value(), {}};
    EXPECT_TRUE(bytes.empty() ||
                device_->upload(on.buffer.data(), bytes.data(), bytes.size()).ok());
    on.tensor = Tensor(on.buffer.data(), dtype, m.rows, m.cols);
    on.tensor.stride = m.stride;
    return on;
  }
  void download(const OnCard& on, Matrix& m) {
    std::vector<uint8_t> bytes(on.buffer.bytes());
    ASSERT_TRUE(bytes.empty() ||
                device_->download(bytes.data(), on.buffer.data(), bytes.size()).ok());
    for (int64_t i = 0; i < m.rows * m.stride; ++i) {
      m.values[static_cast<size_t>(i)] =
          on.tensor.dtype == DType::kF16
              ? f16_to_f32(reinterpret_cast<const uint16_t*>(bytes.data())[i])
              : reinterpret_cast<const float*>(bytes.data())[i];
    }
  }
  // The batch as it lies on the card.
  Batch stage(const TestBatch& owner) {
    Batch batch = owner.batch();
    const size_t bytes = Batch::buffer_elements(batch.sizes) * sizeof(int32_t);
    batch.data = static_cast<const int32_t*>(device_->stage(batch.data, bytes).value());
    return batch;
  }
  void run(const Op& op, std::span<const KvView> kv = {}) {
    Arena measure;
    ExecContext dry{*device_, pool_, measure, kv, true};
    op(dry);
    const Buffer memory = device_->allocate(measure.peak() + 64, "a test").value();
    Arena arena(memory.data(), measure.peak());
    ExecContext ctx{*device_, pool_, arena, kv, false};
    op(ctx);
  }

  bool deterministic_ = false;
  std::unique_ptr<CudaDevice> device_;
  ThreadPool pool_{1};
};

}  // namespace tinyvllm::ops
