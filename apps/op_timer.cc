#include "apps/op_timer.h"

#include "apps/command.h"
#include "base/stopwatch.h"
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

constexpr int kSamples = 5;
constexpr size_t kColdBytes = size_t{96} << 20;  // three times a last-level cache

size_t copies_of(size_t bytes) { return 1 + kColdBytes / std::max<size_t>(bytes, 1); }

ops::Norm ones(OpTimer& timer, int64_t width) {
  const std::vector<float> weights(static_cast<size_t>(width), 1.0f);
  const TensorView view{weights.data(), DType::kF32, Shape{width}};
  return ops::make_norm(timer.runtime().device(), ops::NormKind::kRms, 1e-5f, view, nullptr)
      .value();
}

ops::Linear linear_of(OpTimer& timer, const TensorView& view) {
  return ops::make_linear(timer.runtime().device(), timer.runtime().pool(),
                          {std::span(&view, 1), {}})
      .value();
}

}  // namespace

double TimedOp::bytes() const {
  double sum = 0;
  for (const OpCall& call : calls) sum += call.bytes;
  return sum;
}

double TimedOp::flops() const {
  double sum = 0;
  for (const OpCall& call : calls) sum += call.flops;
  return sum;
}

bool OpTimer::wanted(const std::string& name) const {
  return !interrupted() && (filter_.empty() || name.find(filter_) != std::string::npos);
}

void OpTimer::time(const std::string& name, size_t copies, std::span<const KvView> kv,
                   const Op& op) {
  if (!wanted(name)) return;
  Arena measure;
  ExecContext dry{runtime_.device(), runtime_.pool(), measure, kv, true};
  op(dry, 0);
  std::vector<char> scratch(measure.peak());
  Arena arena(scratch.data(), scratch.size());
  ExecContext ctx{runtime_.device(), runtime_.pool(), arena, kv};
  Ledger ledger;
  ctx.ledger = &ledger;
  op(ctx, 0);
  ctx.ledger = nullptr;

  TimedOp result{name, ledger.calls(), {}};
  size_t next = 0;
  const Stopwatch all;
  // A slow op gets three samples, whatever they cost.
  while (result.seconds.size() < 3 ||
         (result.seconds.size() < kSamples && all.seconds() < seconds_)) {
    const Stopwatch sample;
    int calls = 0;
    do {
      op(ctx, next++ % copies);
      calls += 1;
    } while (sample.seconds() < seconds_ / kSamples);
    result.seconds.push_back(sample.seconds() / calls);
  }
  if (hook_) hook_(result);
  results_.push_back(std::move(result));
}

void time_linears(OpTimer& timer, const std::vector<int>& tokens) {
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
      const size_t copies = copies_of(weights.bytes.size());
      std::vector<std::vector<uint8_t>> sources(is_quantized(dtype) ? 0 : copies, weights.bytes);
      std::vector<ops::Linear> linears;
      for (size_t i = 0; i < copies; ++i) {
        TensorView view = weights.view();
        if (!sources.empty()) view.data = sources[i].data();
        linears.push_back(linear_of(timer, view));
      }
      for (const int count : wanted) {
        Matrix x = ops::random_matrix(count, shape.in, 2);
        Matrix y(count, shape.out);
        timer.time(str_cat(name, count), copies, {}, [&](ExecContext& ctx, size_t i) {
          ops::linear(ctx, linears[i], x.tensor(), y.tensor());
        });
      }
    }
  }
}

// OLMoE's experts, or as many of them as are far more than a cache holds; tokens take turns, so
// that it is not the same experts every time.
void time_mixtures(OpTimer& timer, const std::vector<int>& tokens) {
  constexpr int kUsed = 8, kHidden = 2048, kFfn = 1024, kTurns = 16;
  for (const auto& [dtype, count] :
       {std::pair{DType::kF16, 16}, {DType::kQ8_0, 32}, {DType::kQ4_0, 64}, {DType::kQ4_K, 64}}) {
    const std::string name = str_cat("moe_add ", dtype_name(dtype), " ", kUsed, " of ", count, " ",
                                     kFfn, "x", kHidden, " tokens=");
    const bool wanted = std::any_of(tokens.begin(), tokens.end(),
                                    [&](int rows) { return timer.wanted(str_cat(name, rows)); });
    if (!wanted) continue;
    const ops::Norm norm = ones(timer, kHidden);
    const ops::Weights routes = ops::random_weights(DType::kF32, count, kHidden, 1);
    const ops::Linear router = linear_of(timer, routes.view());
    const ops::Weights up = ops::random_weights(dtype, 2 * kFfn, kHidden, 2);
    const ops::Weights down = ops::random_weights(dtype, kHidden, kFfn, 3);
    std::vector<std::vector<uint8_t>> sources;  // each expert's own, where they stay as they are
    ops::Experts experts;
    for (int e = 0; e < count; ++e) {
      for (const auto& [weights, into] :
           {std::pair{&up, &experts.gate_up}, {&down, &experts.down}}) {
        TensorView view = weights->view();
        if (!is_quantized(dtype)) view.data = sources.emplace_back(weights->bytes).data();
        into->push_back(linear_of(timer, view));
      }
    }
    for (const int rows : tokens) {
      std::vector<Matrix> inputs;
      for (uint32_t i = 0; i < kTurns; ++i) {
        inputs.push_back(ops::random_matrix(rows, kHidden, 4 + i));
      }
      Matrix y(rows, kHidden);
      timer.time(str_cat(name, rows), kTurns, {}, [&](ExecContext& ctx, size_t i) {
        ops::moe_add(ctx, norm, router, experts, {kUsed, true, ops::Gate::kSilu},
                     inputs[i].tensor(), y.tensor());
      });
    }
  }
}

void time_attentions(OpTimer& timer) {
  constexpr int kBlock = 16;
  for (const ops::AttentionShape& shape : ops::kModelAttentions) {
    for (const DType dtype : {DType::kF16, DType::kI8, DType::kF32}) {
      const std::string name =
          str_cat(" ", dtype_name(dtype), " ", shape.heads, "/", shape.kv_heads, "x",
                  shape.head_dim, " cached=", shape.cached, " queries=", shape.queries);
      if (!timer.wanted("attention" + name) && !timer.wanted("rope_kv_write" + name)) continue;
      const ops::DealtBlocks tables({shape.cached + shape.queries}, kBlock, 1);
      const ops::TestBatch owner(tables, {{0, shape.cached, shape.queries}});
      KvView view;
      view.spec = KvSpec{1, shape.kv_heads, shape.head_dim, shape.head_dim, dtype, 0};
      view.block_size = kBlock;
      view.num_blocks = tables.num_blocks;
      const auto bytes = [&] {
        return ops::kv_block_bytes(view.spec, kBlock) * static_cast<size_t>(view.num_blocks);
      };
      const size_t layers = copies_of(bytes());  // used in turn, so that K and V come from memory
      view.spec.layers = static_cast<int>(layers);
      std::vector<char> memory(bytes());
      view.data = memory.data();
      Matrix q = ops::random_matrix(shape.queries, shape.heads * shape.head_dim, 1);
      Matrix k = ops::random_matrix(shape.queries, shape.kv_heads * shape.head_dim, 2);
      Matrix y(shape.queries, shape.heads * shape.head_dim);
      timer.time("attention" + name, layers, std::span(&view, 1), [&](ExecContext& ctx, size_t i) {
        ops::attention(ctx, {shape.heads, 0.125f, 0}, owner.batch(), {0, static_cast<int>(i)},
                       q.tensor(), y.tensor());
      });
      const ops::Rope rope =
          ops::make_rope(ops::RopePairing::kAdjacent, shape.head_dim, shape.head_dim, 1e4);
      timer.time("rope_kv_write" + name, layers, std::span(&view, 1),
                 [&](ExecContext& ctx, size_t i) {
                   ops::rope_kv_write(ctx, rope, owner.batch(), {0, static_cast<int>(i)},
                                      q.tensor(), k.tensor(), k.tensor());
                 });
    }
  }
}

void time_rows(OpTimer& timer, const std::vector<int>& tokens) {
  for (const int64_t width : {576, 2048}) {
    const ops::Norm norm = ones(timer, width), head = ones(timer, 64);
    for (const int count : tokens) {
      Matrix x = ops::random_matrix(count, width, 2);
      Matrix y(count, width);
      const auto row_op = [&](const char* op, auto&& call) {
        timer.time(str_cat(op, " F32 ", width, " tokens=", count), 1, {},
                   [&](ExecContext& ctx, size_t) { call(ctx); });
      };
      row_op("norm", [&](ExecContext& ctx) { ops::norm(ctx, norm, x.tensor(), y.tensor()); });
      row_op("norm_add",
             [&](ExecContext& ctx) { ops::norm_add(ctx, norm, x.tensor(), y.tensor()); });
      row_op("head_norm", [&](ExecContext& ctx) { ops::head_norm(ctx, head, y.tensor()); });
    }
  }
  for (const DType dtype : {DType::kF16, DType::kQ8_0, DType::kQ4_0, DType::kQ6_K}) {
    constexpr int kRows = 32000, kWidth = 2048;
    const std::string name =
        str_cat("embedding ", dtype_name(dtype), " ", kRows, "x", kWidth, " tokens=");
    if (!timer.wanted(str_cat(name, tokens.back()))) continue;
    const ops::Weights table = ops::random_weights(dtype, kRows, kWidth, 1);
    const ops::Embedding e = ops::make_embedding(timer.runtime().device(), table.view()).value();
    for (const int count : tokens) {
      const ops::DealtBlocks blocks({count}, 16, 1);
      const ops::TestBatch owner(blocks, {{0, 0, count}});
      Matrix x(count, kWidth);
      timer.time(str_cat(name, count), 1, {}, [&](ExecContext& ctx, size_t) {
        ops::embedding(ctx, e, owner.batch(), 1, x.tensor());
      });
    }
  }
  for (const int64_t width : {49152, 151936}) {
    for (const int count : {1, 16}) {
      Matrix x = ops::random_matrix(count, width, 2);
      Matrix y(count, width);
      const std::string name = str_cat(" F32 ", width, " tokens=", count);
      timer.time("softmax" + name, 1, {},
                 [&](ExecContext& ctx, size_t) { ops::softmax(ctx, x.tensor(), y.tensor()); });
      std::vector<ops::Ranked> best(static_cast<size_t>(count) * 40);
      timer.time("top_k" + name, 1, {},
                 [&](ExecContext& ctx, size_t) { ops::top_k(ctx, x.tensor(), 40, best); });
    }
  }
}

}  // namespace tinyvllm
