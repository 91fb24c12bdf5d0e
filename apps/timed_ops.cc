#include "apps/timed_ops.h"

#include <algorithm>

#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/moe.h"
#include "ops/norm.h"
#include "ops/rope.h"
#include "ops/softmax.h"
#include "tests/ops/cases.h"
#include "tests/ops/harness.h"

namespace tinyvllm {
namespace {

using ops::Matrix;
using ops::random_matrix;

// A matrix where the device's ops find it.
struct OnDevice {
  Buffer memory;
  Tensor tensor;
};

Result<OnDevice> upload(OpTimer& timer, const Matrix& m, DType dtype) {
  const size_t bytes = row_bytes(dtype, m.cols) * static_cast<size_t>(m.rows);
  OnDevice on;
  TRY_ASSIGN(on.memory, timer.device().allocate(bytes, "activations"));
  std::vector<uint16_t> halves;
  const void* from = m.values.data();
  if (dtype == DType::kF16) {
    for (const float value : m.values) halves.push_back(f32_to_f16(value));
    from = halves.data();
  }
  TRY(timer.device().upload(on.memory.data(), from, bytes));
  on.tensor = Tensor(on.memory.data(), dtype, m.rows, m.cols);
  return on;
}

// What travels between ops, and what layers add to.
Result<OnDevice> activations(OpTimer& timer, const Matrix& m) {
  return upload(timer, m, timer.device().activation_dtype());
}
Result<OnDevice> residual(OpTimer& timer, const Matrix& m) { return upload(timer, m, DType::kF32); }

// Good until the next one is staged.
Result<Batch> staged(OpTimer& timer, const ops::TestBatch& owner) {
  Batch batch = owner.batch();
  TRY_ASSIGN(
      const void* const data,
      timer.device().stage(batch.host, Batch::buffer_elements(batch.sizes) * sizeof(int32_t)));
  batch.data = static_cast<const int32_t*>(data);
  return batch;
}

Result<ops::Norm> ones(OpTimer& timer, int64_t width) {
  const std::vector<float> weights(static_cast<size_t>(width), 1.0f);
  const TensorView view{weights.data(), DType::kF32, Shape{width}};
  return ops::make_norm(timer.device(), ops::NormKind::kRms, 1e-5f, view, nullptr);
}

Result<ops::Linear> linear_of(OpTimer& timer, const TensorView& view) {
  return ops::make_linear(timer.device(), timer.pool(), {std::span(&view, 1), {}});
}

Status time_norms(OpTimer& timer, int64_t width, int rows) {
  TRY_ASSIGN(const ops::Norm norm, ones(timer, width));
  TRY_ASSIGN(const ops::Norm head, ones(timer, 64));
  TRY_ASSIGN(const OnDevice x, residual(timer, random_matrix(rows, width, 2)));
  TRY_ASSIGN(const OnDevice y, activations(timer, Matrix(rows, width)));
  const auto row_op = [&](const char* op, auto&& call) {
    const DType dtype = timer.device().activation_dtype();
    return timer.time(str_cat(op, " ", dtype_name(dtype), " ", width, " tokens=", rows), 1, {},
                      [&](ExecContext& ctx, size_t) { call(ctx); });
  };
  TRY(row_op("norm", [&](ExecContext& ctx) { ops::norm(ctx, norm, x.tensor, y.tensor); }));
  TRY(row_op("norm_add", [&](ExecContext& ctx) { ops::norm_add(ctx, norm, y.tensor, x.tensor); }));
  return row_op("head_norm", [&](ExecContext& ctx) { ops::head_norm(ctx, head, y.tensor); });
}

Status time_embeddings(OpTimer& timer, DType dtype, const std::vector<int>& tokens) {
  constexpr int kRows = 32000, kWidth = 2048;
  const std::string name =
      str_cat("embedding ", dtype_name(dtype), " ", kRows, "x", kWidth, " tokens=");
  if (!timer.wanted(str_cat(name, tokens.back()))) return Status();
  const ops::Weights table = ops::random_weights(dtype, kRows, kWidth, 1);
  TRY_ASSIGN(const ops::Embedding e, ops::make_embedding(timer.device(), table.view()));
  for (const int count : tokens) {
    const ops::DealtBlocks blocks({count}, 16, 1);
    const ops::TestBatch owner(blocks, {{0, 0, count}});
    TRY_ASSIGN(const Batch batch, staged(timer, owner));
    TRY_ASSIGN(const OnDevice x, residual(timer, Matrix(count, kWidth)));
    TRY(timer.time(str_cat(name, count), 1, {},
                   [&](ExecContext& ctx, size_t) { ops::embedding(ctx, e, batch, 1, x.tensor); }));
  }
  return Status();
}

// Logits are floats on any device.
Status time_logits(OpTimer& timer, int64_t width, int rows) {
  constexpr int kBest = 40;
  TRY_ASSIGN(const OnDevice x, residual(timer, random_matrix(rows, width, 2)));
  TRY_ASSIGN(const OnDevice y, residual(timer, Matrix(rows, width)));
  const std::string name = str_cat(" F32 ", width, " tokens=", rows);
  TRY(timer.time("softmax" + name, 1, {},
                 [&](ExecContext& ctx, size_t) { ops::softmax(ctx, x.tensor, y.tensor); }));
  std::vector<ops::Ranked> best(static_cast<size_t>(rows) * kBest);
  return timer.time("top_k" + name, 1, {},
                    [&](ExecContext& ctx, size_t) { ops::top_k(ctx, x.tensor, kBest, best); });
}

}  // namespace

Status time_linears(OpTimer& timer, const std::vector<int>& tokens) {
  for (const ops::LinearShape& shape : ops::kModelLinears) {
    for (const DType dtype : ops::kWeightTypes) {
      if (shape.in % dtype_info(dtype).block_elements != 0) continue;
      const std::string name =
          str_cat("linear ", dtype_name(dtype), " ", shape.out, "x", shape.in, " tokens=");
      std::vector<int> wanted;
      for (const int count : tokens) {
        if (timer.wanted(str_cat(name, count))) wanted.push_back(count);
      }
      if (wanted.empty()) continue;
      const ops::Weights weights = ops::random_weights(dtype, shape.out, shape.in, 1);
      const size_t copies = timer.copies_of(weights.bytes.size());
      std::vector<std::vector<uint8_t>> sources(is_quantized(dtype) ? 0 : copies, weights.bytes);
      std::vector<ops::Linear> linears;
      for (size_t i = 0; i < copies; ++i) {
        TensorView view = weights.view();
        if (!sources.empty()) view.data = sources[i].data();
        TRY_ASSIGN(ops::Linear linear, linear_of(timer, view));
        linears.push_back(std::move(linear));
      }
      for (const int count : wanted) {
        TRY_ASSIGN(const OnDevice x, activations(timer, random_matrix(count, shape.in, 2)));
        TRY_ASSIGN(const OnDevice y, activations(timer, Matrix(count, shape.out)));
        TRY(timer.time(str_cat(name, count), copies, {}, [&](ExecContext& ctx, size_t i) {
          ops::linear(ctx, linears[i], x.tensor, y.tensor);
        }));
      }
    }
  }
  return Status();
}

// OLMoE's experts, or as many of them as are far more than a cache holds; tokens take turns, so
// that it is not the same experts every time.
Status time_mixtures(OpTimer& timer, const std::vector<int>& tokens) {
  constexpr int kUsed = 8, kHidden = 2048, kFfn = 1024, kTurns = 16;
  for (const auto& [dtype, count] :
       {std::pair{DType::kF16, 16}, {DType::kQ8_0, 32}, {DType::kQ4_0, 64}, {DType::kQ4_K, 64}}) {
    const std::string name = str_cat("moe_add ", dtype_name(dtype), " ", kUsed, " of ", count, " ",
                                     kFfn, "x", kHidden, " tokens=");
    const bool wanted = std::any_of(tokens.begin(), tokens.end(),
                                    [&](int rows) { return timer.wanted(str_cat(name, rows)); });
    if (!wanted) continue;
    TRY_ASSIGN(const ops::Norm norm, ones(timer, kHidden));
    const ops::Weights routes = ops::random_weights(DType::kF32, count, kHidden, 1);
    TRY_ASSIGN(const ops::Linear router, linear_of(timer, routes.view()));
    const ops::Weights up = ops::random_weights(dtype, 2 * kFfn, kHidden, 2);
    const ops::Weights down = ops::random_weights(dtype, kHidden, kFfn, 3);
    std::vector<std::vector<uint8_t>> sources;  // each expert's own, where they stay as they are
    ops::Experts experts;
    for (int e = 0; e < count; ++e) {
      for (const auto& [weights, into] :
           {std::pair{&up, &experts.gate_up}, {&down, &experts.down}}) {
        TensorView view = weights->view();
        if (!is_quantized(dtype)) view.data = sources.emplace_back(weights->bytes).data();
        TRY_ASSIGN(ops::Linear linear, linear_of(timer, view));
        into->push_back(std::move(linear));
      }
    }
    TRY(ops::prepare_experts(timer.device(), experts));
    for (const int rows : tokens) {
      std::vector<OnDevice> inputs;
      for (uint32_t i = 0; i < kTurns; ++i) {
        TRY_ASSIGN(OnDevice input, residual(timer, random_matrix(rows, kHidden, 4 + i)));
        inputs.push_back(std::move(input));
      }
      TRY_ASSIGN(const OnDevice y, residual(timer, Matrix(rows, kHidden)));
      TRY(timer.time(str_cat(name, rows), kTurns, {}, [&](ExecContext& ctx, size_t i) {
        ops::moe_add(ctx, norm, router, experts, {kUsed, true, ops::Gate::kSilu}, inputs[i].tensor,
                     y.tensor);
      }));
    }
  }
  return Status();
}

Status time_attentions(OpTimer& timer) {
  constexpr int kBlock = 16;
  for (const ops::AttentionShape& shape : ops::kModelAttentions) {
    for (const DType dtype : {DType::kF16, DType::kI8, DType::kF32}) {
      const std::string name =
          str_cat(" ", dtype_name(dtype), " ", shape.heads, "/", shape.kv_heads, "x",
                  shape.head_dim, " cached=", shape.cached, " queries=", shape.queries);
      if (!timer.wanted("attention" + name) && !timer.wanted("rope_kv_write" + name)) continue;
      const ops::DealtBlocks tables({shape.cached + shape.queries}, kBlock, 1);
      const ops::TestBatch owner(tables, {{0, shape.cached, shape.queries}});
      TRY_ASSIGN(const Batch batch, staged(timer, owner));
      KvView view;
      view.spec = KvSpec{1, shape.kv_heads, shape.head_dim, shape.head_dim, dtype, 0};
      view.block_size = kBlock;
      view.num_blocks = tables.num_blocks;
      const auto bytes = [&] {
        return ops::kv_block_bytes(view.spec, kBlock) * static_cast<size_t>(view.num_blocks);
      };
      // Used in turn, so that K and V come from memory.
      const size_t layers = timer.copies_of(bytes());
      view.spec.layers = static_cast<int>(layers);
      TRY_ASSIGN(const Buffer memory, timer.device().allocate(bytes(), "a KV cache"));
      // Written once: pages that nobody has touched are all one page of zeros, and in a cache.
      const std::vector<char> zeros(bytes());
      TRY(timer.device().upload(memory.data(), zeros.data(), zeros.size()));
      view.data = memory.data();
      const int64_t q_width = shape.heads * shape.head_dim;
      TRY_ASSIGN(const OnDevice q, activations(timer, random_matrix(shape.queries, q_width, 1)));
      TRY_ASSIGN(
          const OnDevice k,
          activations(timer, random_matrix(shape.queries, shape.kv_heads * shape.head_dim, 2)));
      TRY_ASSIGN(const OnDevice y, activations(timer, Matrix(shape.queries, q_width)));
      const std::span<const KvView> kv(&view, 1);
      TRY(timer.time("attention" + name, layers, kv, [&](ExecContext& ctx, size_t i) {
        ops::attention(ctx, {shape.heads, 0.125f, 0}, batch, {0, static_cast<int>(i)}, q.tensor,
                       y.tensor);
      }));
      const ops::Rope rope =
          ops::make_rope(ops::RopePairing::kAdjacent, shape.head_dim, shape.head_dim, 1e4);
      TRY(timer.time("rope_kv_write" + name, layers, kv, [&](ExecContext& ctx, size_t i) {
        ops::rope_kv_write(ctx, rope, batch, {0, static_cast<int>(i)}, q.tensor, k.tensor,
                           k.tensor);
      }));
    }
  }
  return Status();
}

Status time_rows(OpTimer& timer, const std::vector<int>& tokens) {
  for (const int64_t width : {576, 2048}) {
    for (const int rows : tokens) TRY(time_norms(timer, width, rows));
  }
  for (const DType dtype : {DType::kF16, DType::kQ8_0, DType::kQ4_0, DType::kQ6_K}) {
    TRY(time_embeddings(timer, dtype, tokens));
  }
  for (const int64_t width : {49152, 151936}) {
    for (const int rows : {1, 16}) TRY(time_logits(timer, width, rows));
  }
  return Status();
}

}  // namespace tinyvllm
