// Tokens are sorted by expert, so that an expert's weights are read once for all its tokens. Every
// result lands in a row of its own, and a token adds its rows in the router's order: how many
// others chose the same expert changes no bit.
#include <algorithm>
#include <span>
#include <utility>

#include "ops/cpu/ops.h"
#include "ops/op_scope.h"

namespace tinyvllm::ops::cpu {
namespace {

// The router's word on all tokens; slot token · used + j is a token's j-th choice.
struct Routes {
  int64_t tokens;
  int64_t used;
  Ranked* choice;  // [slots]: expert and its weight
  int32_t* row;    // [slots]: where the choice's result lies, experts one after the other
  int32_t* token;  // [slots]: whose it is, by row
  int32_t* end;    // [experts]: rows of expert e are [end[e - 1], end[e])

  std::span<Ranked> choices() const { return {choice, static_cast<size_t>(tokens * used)}; }
};

template <class T>
T* take(ExecContext& ctx, int64_t count) {
  return static_cast<T*>(ctx.arena.take(static_cast<size_t>(count) * sizeof(T)));
}

// A token's weights add up to 1.
void normalize(const Routes& routes) {
  for (int64_t t = 0; t < routes.tokens; ++t) {
    const auto own = routes.choices().subspan(static_cast<size_t>(t * routes.used),
                                              static_cast<size_t>(routes.used));
    float sum = 0;
    for (const Ranked& choice : own) sum += choice.value;
    for (Ranked& choice : own) choice.value /= sum;
  }
}

// Counting sort by expert, stable: an expert's tokens stay in their order.
void sort_by_expert(const Routes& routes, int64_t count) {
  const int64_t slots = routes.tokens * routes.used;
  std::fill(routes.end, routes.end + count, 0);
  for (int64_t s = 0; s < slots; ++s) routes.end[routes.choice[s].id] += 1;
  int32_t begin = 0;
  for (int64_t e = 0; e < count; ++e) begin += std::exchange(routes.end[e], begin);
  for (int64_t s = 0; s < slots; ++s) {
    const int32_t row = routes.end[routes.choice[s].id]++;
    routes.row[s] = row;
    routes.token[row] = static_cast<int32_t>(s / routes.used);
  }
}

void run_expert(ExecContext& ctx, const Experts& experts, size_t e, Gate gate, const Tensor& in,
                const Tensor& gated, const Tensor& out) {
  linear_gated(ctx, experts.gate_up[e], gate, in, gated);
  ops::linear(ctx, experts.down[e], gated, out);
}

void add_results(ExecContext& ctx, const Routes& routes, const Tensor& results, const Tensor& y) {
  // What is in the experts' products, those report themselves.
  const OpScope scope(ctx, [&] {
    return OpCall{.op = "moe_add",
                  .dtype = DType::kF32,
                  .rows = y.rows,
                  .out = y.cols,
                  .in = routes.used * y.cols,
                  .bytes = bytes_of(results) + 2 * bytes_of(y),
                  .flops = 2.0 * static_cast<double>(results.rows) * static_cast<double>(y.cols)};
  });
  ctx.pool.parallel_for(y.rows, [&](int64_t t, int) {
    float* sum = y.f32() + t * y.stride;
    for (int64_t s = t * routes.used; s < (t + 1) * routes.used; ++s) {
      const float* result = results.f32() + routes.row[s] * results.stride;
      for (int64_t i = 0; i < y.cols; ++i) sum[i] += routes.choice[s].value * result[i];
    }
  });
}

}  // namespace

void moe_add(ExecContext& ctx, const Norm& n, const Linear& router, const Experts& experts,
             const MoeParams& params, const Tensor& x, const Tensor& y) {
  const ArenaScope scope(ctx.arena);
  const int64_t count = router.out();
  const int64_t slots = x.rows * params.used;
  const Tensor normed = ctx.tensor(x.rows, x.cols);
  const Tensor logits = ctx.tensor(x.rows, count);
  const Tensor gathered = ctx.tensor(x.rows, x.cols);  // no token takes an expert twice
  const Tensor gated = ctx.tensor(x.rows, experts.down.front().in());
  const Tensor results = ctx.tensor(slots, x.cols);
  const Routes routes{x.rows,
                      params.used,
                      take<Ranked>(ctx, slots),
                      take<int32_t>(ctx, slots),
                      take<int32_t>(ctx, slots),
                      take<int32_t>(ctx, count)};
  ops::norm(ctx, n, x, normed);
  ops::linear(ctx, router, normed, logits);
  ops::softmax(ctx, logits, logits);
  ops::top_k(ctx, logits, params.used, routes.choices());
  if (ctx.dry_run) {
    run_expert(ctx, experts, 0, params.gate, gathered, gated, results.row_range(0, x.rows));
    return;
  }
  if (params.normalize) normalize(routes);
  sort_by_expert(routes, count);
  int64_t begin = 0;
  for (int64_t e = 0; e < count; ++e) {
    const int64_t rows = routes.end[e] - begin;
    if (rows == 0) continue;
    const Tensor in = gathered.row_range(0, rows);
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = normed.f32() + routes.token[begin + r] * normed.stride;
      std::copy_n(from, x.cols, in.f32() + r * in.stride);
    }
    run_expert(ctx, experts, static_cast<size_t>(e), params.gate, in, gated.row_range(0, rows),
               results.row_range(begin, rows));
    begin += rows;
  }
  add_results(ctx, routes, results, y);
}

}  // namespace tinyvllm::ops::cpu
