// The card's linears and attention against the reference, at the cases that the CPU's are tested
// at. Activations are halves there: x, its normalised form and y are each rounded to 11 bits, so a
// product is off by 2^-10 of Σ|w·x|, quantized scales by another 2^-11; sums themselves are float.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

#include "device/cuda/cuda_device.h"
#include "ops/cuda/weights.h"
#include "ops/embedding.h"
#include "ops/finite.h"
#include "ops/linear.h"
#include "ops/reference/dequantize.h"
#include "ops/reference/ops.h"
#include "ops/softmax.h"
#include "tests/ops/attention_steps.h"
#include "tests/ops/cases.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

constexpr float kHalf = 0x1p-11f;  // the rounding to a half

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = CudaDevice::create({.separate_buffers = true});
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
  void run(const Op& op, std::span<const KvView> kv = {}) {
    Arena measure;
    ExecContext dry{*device_, pool_, measure, kv, true};
    op(dry);
    const Buffer memory = device_->allocate(measure.peak() + 64, "a test").value();
    Arena arena(memory.data(), measure.peak());
    ExecContext ctx{*device_, pool_, arena, kv, false};
    op(ctx);
  }

  std::unique_ptr<CudaDevice> device_;
  ThreadPool pool_{1};
};

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

TEST_F(CudaTest, AttentionAgreesWithReference) {
  for (const AttentionCase& c : kAttentionCases) {
    for (const DType dtype : {DType::kF16, DType::kF32}) {
      const int head = c.head_dim;
      const Rope rope = make_rope(RopePairing::kHalves, head, head / 4 * 2, 10000);
      Inputs in = random_inputs(c);
      for (auto* all : {&in.q, &in.k, &in.v}) {
        for (Matrix& m : *all) {
          for (float& v : m.values) v = f16_to_f32(f32_to_f16(v));
        }
      }
      const DealtBlocks tables(c.lengths, c.block_size, 5);
      KvView view;
      view.spec = KvSpec{2, c.kv_heads, head, head, dtype, c.window};
      view.block_size = c.block_size;
      view.num_blocks = tables.num_blocks;
      const size_t bytes =
          kv_block_bytes(view.spec, c.block_size) * static_cast<size_t>(tables.num_blocks);
      const Buffer cache = device_->allocate(bytes, "a test").value();
      const std::vector<char> garbage(bytes, '\xFF');
      ASSERT_TRUE(device_->upload(cache.data(), garbage.data(), bytes).ok());
      view.data = cache.data();

      std::vector<Matrix> y = results_for(c);
      // A step with most of every sequence, one with all but the last token, one with that.
      std::vector<std::vector<Chunk>> steps(3);
      for (int s = 0; s < static_cast<int>(c.lengths.size()); ++s) {
        const int length = c.lengths[static_cast<size_t>(s)];
        const int cut = length * 2 / 3;
        if (cut > 0) steps[0].push_back({s, 0, cut});
        if (length - 1 > cut) steps[1].push_back({s, cut, length - 1 - cut});
        steps[2].push_back({s, std::max(length - 1, cut), 1});
      }
      for (const std::vector<Chunk>& chunks : steps) {
        if (chunks.empty()) continue;
        const TestBatch owner(tables, chunks);
        Batch batch = owner.batch();
        const int q_width = c.heads * head;
        const int kv_width = c.kv_heads * head;
        Matrix qkv(batch.sizes.num_tokens, q_width + 2 * kv_width);
        Matrix out(batch.sizes.num_tokens, q_width);
        int token = 0;
        for (const Chunk& chunk : chunks) {
          const auto s = static_cast<size_t>(chunk.sequence);
          for (int t = chunk.begin; t < chunk.begin + chunk.count; ++t, ++token) {
            std::copy_n(in.q[s].row(t), q_width, qkv.row(token));
            std::copy_n(in.k[s].row(t), kv_width, qkv.row(token) + q_width);
            std::copy_n(in.v[s].row(t), kv_width, qkv.row(token) + q_width + kv_width);
          }
        }
        const OnCard all = upload(qkv, DType::kF16);
        const OnCard outs = upload(out, DType::kF16);
        batch.data = static_cast<const int32_t*>(
            device_
                ->stage(StageSlot::kBatch, batch.data,
                        Batch::buffer_elements(batch.sizes) * sizeof(int32_t))
                .value());
        const Tensor q = all.tensor.columns(0, q_width);
        run(
            [&](ExecContext& ctx) {
              rope_kv_write(ctx, rope, batch, kLayer, q, all.tensor.columns(q_width, kv_width),
                            all.tensor.columns(q_width + kv_width, kv_width));
              attention(ctx, {c.heads, 1 / std::sqrt(static_cast<float>(head)), c.soft_cap}, batch,
                        kLayer, q, outs.tensor);
            },
            {&view, 1});
        download(outs, out);
        token = 0;
        for (const Chunk& chunk : chunks) {
          for (int t = chunk.begin; t < chunk.begin + chunk.count; ++t, ++token) {
            std::copy_n(out.row(token), q_width, y[static_cast<size_t>(chunk.sequence)].row(t));
          }
        }
      }
      for (size_t s = 0; s < c.lengths.size(); ++s) {
        for (int h = 0; h < c.heads; ++h) {
          const int kv = h / (c.heads / c.kv_heads);
          Matrix k(c.lengths[s], head);
          Matrix v(c.lengths[s], head);
          for (int t = 0; t < c.lengths[s]; ++t) {
            std::copy_n(in.k[s].row(t) + kv * head, head, k.row(t));
            std::copy_n(in.v[s].row(t) + kv * head, head, v.row(t));
            reference::rotate(rope, t, k.row(t));
          }
          for (int t = 0; t < c.lengths[s]; ++t) {
            std::vector<float> q(in.q[s].row(t) + h * head, in.q[s].row(t) + (h + 1) * head);
            reference::rotate(rope, t, q.data());
            const int first = c.window > 0 ? std::max(0, t + 1 - c.window) : 0;
            std::vector<float> expected(static_cast<size_t>(head));
            reference::attention({q.data(), k.row(first), v.row(first), t + 1 - first, head, head,
                                  1 / std::sqrt(static_cast<float>(head)), c.soft_cap},
                                 expected.data());
            // A score sums `head` products of rounded halves of about 1: off by some 2^-11 · 8.
            for (int d = 0; d < head; ++d) {
              expect_close(y[s].row(t)[h * head + d], expected[static_cast<size_t>(d)], 32 * kHalf,
                           str_cat("head_dim ", head, " ", dtype_name(dtype), " sequence ", s,
                                   " head ", h, " token ", t, " dim ", d));
            }
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tinyvllm::ops
