// A product with weights: activations are normalised and quantized once, then threads take groups
// of 8 rows, of all parts in one loop. A group's weights stay in the L1 cache while tokens pass by
// in chunks.
#include <algorithm>
#include <array>
#include <atomic>

#include "ops/cpu/kernel_table.h"
#include "ops/cpu/linear_weights.h"
#include "ops/cpu/ops.h"

namespace tinyvllm::ops::cpu {
namespace {

constexpr int64_t kTokenChunk = 64;  // tokens of a tile's results: 2 KB
// A piece reads about this much: at some 10 GB/s per core 6 µs, long beside the 0.1 µs that handing
// it out costs, short beside the op. Also what stays in L2 while chunks of tokens pass.
constexpr int64_t kPieceBytes = 65536;
constexpr int64_t kMinPieceWork = 16384;  // products below which a piece costs more than it brings

// The input in the forms that the parts' kernels read; null where nobody asks.
struct Activations {
  std::array<const char*, kForms> rows{};
  std::array<int64_t, kForms> stride{};  // bytes
};

struct FormInfo {
  int64_t columns;  // of a block
  size_t bytes;
  size_t tail;  // bytes behind a row's last one
  QuantizeKernel Kernels::*quantize;
};
constexpr FormInfo kFormInfo[kForms] = {
    {1, sizeof(float), 0, nullptr},
    {32, sizeof(Q8Block), sizeof(Outlier), &Kernels::quantize_q8},
    {32, sizeof(Q8WideBlock), 0, &Kernels::quantize_q8_wide},
    {256, sizeof(Q8KBlock), sizeof(Outlier), &Kernels::quantize_q8_k},
};

const LinearWeights& weights_of(const Linear& w) {
  return static_cast<const LinearWeights&>(w.weights());
}

// Normalises and quantizes, as far as wanted. A dry run only takes the memory.
Activations prepare(ExecContext& ctx, const Norm* norm, const LinearWeights& w, const Tensor& x) {
  std::array<bool, kForms> wanted{};
  for (const LinearPart& part : w.parts) wanted[static_cast<size_t>(part.form)] = true;
  Activations a;
  std::array<char*, kForms> memory{};
  bool quantized = false;
  for (size_t form = 1; form < kForms; ++form) {
    if (!wanted[form]) continue;
    quantized = true;
    const FormInfo& info = kFormInfo[form];
    a.stride[form] =
        x.cols / info.columns * static_cast<int64_t>(info.bytes) + static_cast<int64_t>(info.tail);
    a.rows[form] = memory[form] =
        static_cast<char*>(ctx.arena.take(static_cast<size_t>(x.rows * a.stride[form])));
  }
  // Rows that only quantizers look at are normalised into one buffer per thread.
  const bool keep = wanted[0];
  Tensor source = x;
  if (norm != nullptr) source = ctx.tensor(keep ? x.rows : ctx.pool.size(), x.cols);
  a.rows[0] = static_cast<const char*>(source.data);
  a.stride[0] = source.stride * static_cast<int64_t>(sizeof(float));
  if (ctx.dry_run || (norm == nullptr && !quantized)) return a;

  const Kernels& k = kernels(ctx.device);
  ctx.pool.parallel_for(
      x.rows,
      [&](int64_t r, int thread) {
        const float* row = x.f32() + r * x.stride;
        if (norm != nullptr) {
          float* to = source.f32() + (keep ? r : thread) * source.stride;
          norm_row(ctx, *norm, row, to);
          row = to;
        }
        for (size_t form = 1; form < kForms; ++form) {
          if (!wanted[form]) continue;
          (k.*kFormInfo[form].quantize)(row, x.cols, memory[form] + r * a.stride[form]);
        }
      },
      quantized ? "quantize_activations" : "norm_activations");
  return a;
}

// tile[t, 0…7] = rows of one group times tokens [token, token + tokens)
void multiply(const LinearPart& part, int64_t k, int64_t group, const Activations& a, int64_t token,
              int64_t tokens, float* tile, int64_t stride) {
  LinearTile t{};
  t.weights = part.data + group * part.group_bytes;
  t.row_bytes = part.group_bytes / kRowGroup;
  t.rows = static_cast<int>(std::min<int64_t>(kRowGroup, part.rows - group * kRowGroup));
  t.k = k;
  const auto form = static_cast<size_t>(part.form);
  t.x = a.rows[form] + token * a.stride[form];
  t.x_stride = a.stride[form];
  t.tokens = tokens;
  t.y = tile;
  t.y_stride = stride;
  part.kernel(t);
}

// y (+)= tile + bias
void finish(const float* tile, const float* bias, int64_t tokens, int64_t rows, bool add, float* y,
            int64_t y_stride) {
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t r = 0; r < rows; ++r) {
      float value = tile[t * kRowGroup + r];
      if (bias != nullptr) value += bias[r];
      y[t * y_stride + r] = add ? y[t * y_stride + r] + value : value;
    }
  }
}

// Calls body(group, first token, tokens) for every group and chunk of tokens, from all threads.
// Weights that are read once are dealt out in pieces that shrink: long ones first, because a core
// that stays on one stretch of memory is served best (TinyLlama's F16 rows, two cores: pieces of
// 64 KB 37.9 GB/s, of 1 MB 42.6), short ones last, so that nobody waits long for another.
template <class Body>
void for_groups(ExecContext& ctx, int64_t groups, int64_t group_bytes, int64_t columns,
                int64_t tokens, Body&& body) {
  const int64_t shares = 4 * ctx.pool.size();
  const int64_t work = kRowGroup * columns * tokens;
  const int64_t least =
      std::max({std::min((groups + shares - 1) / shares, kPieceBytes / group_bytes),
                kMinPieceWork / std::max<int64_t>(1, work), int64_t{1}});
  const int64_t divisor = tokens <= kTokenChunk ? 2 * ctx.pool.size() : groups;
  std::atomic<int64_t> next{0};
  ctx.pool.parallel_for(ctx.pool.size(), [&](int64_t, int) {
    int64_t begin = next.load(std::memory_order_relaxed);
    while (begin < groups) {
      const int64_t end = std::min(groups, begin + std::max(least, (groups - begin) / divisor));
      if (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      for (int64_t token = 0; token < tokens; token += kTokenChunk) {
        const int64_t count = std::min(kTokenChunk, tokens - token);
        for (int64_t g = begin; g < end; ++g) body(g, token, count);
      }
      begin = next.load(std::memory_order_relaxed);
    }
  });
}

using Tile = std::array<float, kTokenChunk * kRowGroup>;

void multiply_all(ExecContext& ctx, const LinearWeights& w, const Activations& a, bool add,
                  const Tensor& y) {
  const auto* biases = static_cast<const float*>(w.bias.data());
  const auto body = [&](int64_t index, int64_t token, int64_t tokens) {
    const LinearPart* part = w.parts.data();
    int64_t group = index;
    while (group >= part->groups()) group -= part++->groups();
    Tile tile;
    multiply(*part, w.in, group, a, token, tokens, tile.data(), kRowGroup);
    const int64_t row = part->row_begin + group * kRowGroup;
    finish(tile.data(), biases == nullptr ? nullptr : biases + row, tokens,
           std::min<int64_t>(kRowGroup, part->rows - group * kRowGroup), add,
           y.f32() + token * y.stride + row, y.stride);
  };
  for_groups(ctx, w.groups, w.parts.front().group_bytes, w.in, y.rows, body);
}

// w is [G; U] and the groups of both begin together: 8 columns of each side by side.
void multiply_gated(ExecContext& ctx, const LinearWeights& w, const Activations& a, GateKernel gate,
                    const Tensor& y) {
  const int64_t half = w.out / 2;
  const auto* biases = static_cast<const float*>(w.bias.data());
  const auto body = [&](int64_t group, int64_t token, int64_t tokens) {
    const int64_t rows = std::min<int64_t>(kRowGroup, half - group * kRowGroup);
    Tile tiles[2];
    for (int which = 0; which < 2; ++which) {
      const int64_t row = which * half + group * kRowGroup;
      const LinearPart& part = *w.part_at(row);
      float* tile = tiles[which].data();
      multiply(part, w.in, (row - part.row_begin) / kRowGroup, a, token, tokens, tile, kRowGroup);
      if (biases != nullptr) finish(tile, biases + row, tokens, rows, false, tile, kRowGroup);
    }
    for (int64_t t = 0; t < tokens; ++t) {
      gate(tiles[0].data() + t * kRowGroup, tiles[1].data() + t * kRowGroup, rows,
           y.f32() + (token + t) * y.stride + group * kRowGroup);
    }
  };
  for_groups(ctx, (half + kRowGroup - 1) / kRowGroup, 2 * w.parts.front().group_bytes, 2 * w.in,
             y.rows, body);
}

}  // namespace

void linear(ExecContext& ctx, const Norm* norm, const Linear& w, Epilogue epilogue, const Tensor& x,
            const Tensor& y) {
  const ArenaScope scope(ctx.arena);
  const LinearWeights& weights = weights_of(w);
  const Activations a = prepare(ctx, norm, weights, x);
  if (epilogue == Epilogue::kStore || epilogue == Epilogue::kAdd) {
    if (!ctx.dry_run) multiply_all(ctx, weights, a, epilogue == Epilogue::kAdd, y);
    return;
  }
  const Kernels& k = kernels(ctx.device);
  const GateKernel gate = epilogue == Epilogue::kSiluGate ? k.silu_gate : k.gelu_gate;
  if (weights.halves_align) {
    if (!ctx.dry_run) multiply_gated(ctx, weights, a, gate, y);
    return;
  }
  const Tensor both = ctx.tensor(y.rows, w.out());
  if (ctx.dry_run) return;
  multiply_all(ctx, weights, a, false, both);
  ctx.pool.parallel_for(y.rows, [&](int64_t r, int) {
    const float* row = both.f32() + r * both.stride;
    gate(row, row + y.cols, y.cols, y.f32() + r * y.stride);
  });
}

}  // namespace tinyvllm::ops::cpu
