// A vocabulary-wide row is cut into chunks of fixed length, so that threads share one row and the
// sum is added up in the same order for any number of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/cpu/kernel_table.h"
#include "ops/cpu/ops.h"

namespace tinyvllm::ops::cpu {
namespace {

constexpr int64_t kChunk = 8192;

// Descending by value, then ascending by id; NaN behind everything.
bool before(const Ranked& a, const Ranked& b) {
  if (std::isnan(a.value) || std::isnan(b.value)) {
    if (std::isnan(a.value) != std::isnan(b.value)) return std::isnan(b.value);
    return a.id < b.id;
  }
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

// The k best seen so far, and some more: the list is cut back when it has twice as many.
class Best {
 public:
  explicit Best(int k) : k_(static_cast<size_t>(k)) { list_.reserve(2 * k_ + 1); }

  void offer(Ranked r) {
    list_.push_back(r);
    if (list_.size() >= 2 * k_ + 1) cut();
  }
  // What an element must exceed to matter; those offered later lose ties by their id.
  float threshold() const { return threshold_; }
  bool full() const { return cut_; }

  void finish(Ranked* to) {
    const size_t n = std::min(k_, list_.size());
    std::partial_sort(list_.begin(), list_.begin() + static_cast<ptrdiff_t>(n), list_.end(),
                      before);
    std::copy_n(list_.begin(), n, to);
    std::fill(to + n, to + k_, Ranked{});
  }

 private:
  void cut() {
    const auto last = list_.begin() + static_cast<ptrdiff_t>(k_) - 1;
    std::nth_element(list_.begin(), last, list_.end(), before);
    list_.resize(k_);
    threshold_ = last->value;
    cut_ = !std::isnan(threshold_);
  }

  const size_t k_;
  std::vector<Ranked> list_;
  float threshold_ = 0;
  bool cut_ = false;
};

void top_k_row(const Kernels& kernel, const float* x, int64_t n, int k, Ranked* to) {
  if (k == 0) return;
  Best best(k);
  int64_t i = 0;
  for (; i < n && !best.full(); ++i) best.offer({static_cast<int32_t>(i), x[i]});
  while (i < n) {
    i += kernel.find_above(x + i, n - i, best.threshold());
    if (i < n) best.offer({static_cast<int32_t>(i), x[i]});
    i += 1;
  }
  best.finish(to);
}

}  // namespace

void softmax(ExecContext& ctx, const Tensor& x, const Tensor& y) {
  const ArenaScope scope(ctx.arena);
  const int64_t chunks = (x.cols + kChunk - 1) / kChunk;
  const Tensor largest = ctx.tensor(x.rows, chunks);
  const Tensor sums = ctx.tensor(x.rows, chunks);
  if (ctx.dry_run || x.cols == 0) return;
  const Kernels& kernel = kernels(ctx.device);

  // Calls body(row, chunk, first column, columns) for every chunk, from all threads.
  const auto for_chunks = [&](auto&& body) {
    ctx.pool.parallel_for(x.rows * chunks, [&](int64_t task, int) {
      const int64_t chunk = task % chunks;
      body(task / chunks, chunk, chunk * kChunk, std::min(kChunk, x.cols - chunk * kChunk));
    });
  };
  for_chunks([&](int64_t r, int64_t chunk, int64_t begin, int64_t n) {
    largest.f32()[r * chunks + chunk] = kernel.largest(x.f32() + r * x.stride + begin, n);
  });
  for_chunks([&](int64_t r, int64_t chunk, int64_t begin, int64_t n) {
    const float* tops = largest.f32() + r * chunks;
    sums.f32()[r * chunks + chunk] =
        kernel.exponentials(x.f32() + r * x.stride + begin, n,
                            *std::max_element(tops, tops + chunks), y.f32() + r * y.stride + begin);
  });
  for_chunks([&](int64_t r, int64_t, int64_t begin, int64_t n) {
    float total = 0;
    for (int64_t c = 0; c < chunks; ++c) total += sums.f32()[r * chunks + c];
    float* row = y.f32() + r * y.stride + begin;
    for (int64_t i = 0; i < n; ++i) row[i] /= total;
  });
}

void top_k(ExecContext& ctx, const Tensor& x, int k, std::span<Ranked> best) {
  const Kernels& kernel = kernels(ctx.device);
  ctx.pool.parallel_for(x.rows, [&](int64_t r, int) {
    top_k_row(kernel, x.f32() + r * x.stride, x.cols, k, best.data() + r * k);
  });
}

}  // namespace tinyvllm::ops::cpu
