// Work is cut into (run of query tokens of one sequence, KV head); a task's rows are the queries of
// all heads that share the KV head. Each walks the tiles of the cache that its tokens see, in
// ascending order.
#include <algorithm>
#include <cstring>
#include <limits>

#include "ops/cpu/kernel_table.h"
#include "ops/cpu/kv_layout.h"
#include "ops/cpu/ops.h"

namespace tinyvllm::ops::cpu {
namespace {

// Query tokens of a task: K and V of a tile are read from L1 that many times.
constexpr int kTokensPerTask = 8;

// One thread's place for a task's rows.
struct Scratch {
  float* q;    // [rows, k_dim]
  float* acc;  // [rows, v_dim]
  float* max;
  float* sum;
  int* begin;
  int* end;
  char* gathered;  // a tile, when blocks are not whole groups of 8 tokens
};

struct Job {
  const Kernels& kernel;
  const AttentionParams& params;
  const Batch& batch;
  const KvView& view;
  KvLayout layout;
  int layer;
  int group;    // of the KV cache
  int sharing;  // query heads per KV head
  const Tensor& q;
  const Tensor& y;
};

// Copies the tokens [begin, end) of a tile to where a block of 64 tokens would have them.
void gather_tile(const Job& job, const int32_t* blocks, int head, int tile, int begin, int end,
                 char* to, AttentionTile& t) {
  const size_t element = job.layout.element_bytes();
  const int k_dim = t.k_dim;
  const size_t v_bytes = static_cast<size_t>(t.v_dim) * element;
  char* v = to + static_cast<size_t>(kKvTile * k_dim) * element;
  for (int i = begin; i < end; ++i) {
    const int position = tile * kKvTile + i;
    const int32_t block = blocks[position / job.view.block_size];
    const int offset = position % job.view.block_size;
    const char* group = job.layout.k_group(job.layer, block, head, offset / kKvLanes * kKvLanes);
    char* target = to + static_cast<size_t>(i / kKvLanes * kKvLanes * k_dim) * element;
    for (int d = 0; d < k_dim; ++d) {
      std::memcpy(target + static_cast<size_t>(d * kKvLanes + i % kKvLanes) * element,
                  group + static_cast<size_t>(d * kKvLanes + offset % kKvLanes) * element, element);
    }
    std::memcpy(v + static_cast<size_t>(i) * v_bytes,
                job.layout.v_row(job.layer, block, head, offset), v_bytes);
  }
  for (int g = begin / kKvLanes; g * kKvLanes < end; ++g) {
    t.k[g] = to + static_cast<size_t>(g * kKvLanes * k_dim) * element;
    t.v[g] = v + static_cast<size_t>(g * kKvLanes) * v_bytes;
  }
}

void find_tile(const Job& job, const int32_t* blocks, int head, int tile, int begin, int end,
               char* gathered, AttentionTile& t) {
  if (job.view.block_size % kKvLanes != 0) {
    return gather_tile(job, blocks, head, tile, begin, end, gathered, t);
  }
  for (int g = begin / kKvLanes; g * kKvLanes < end; ++g) {
    const int position = tile * kKvTile + g * kKvLanes;
    const int32_t block = blocks[position / job.view.block_size];
    const int offset = position % job.view.block_size;
    t.k[g] = job.layout.k_group(job.layer, block, head, offset);
    t.v[g] = job.layout.v_row(job.layer, block, head, offset);
  }
}

void attend_tokens(const Job& job, int sequence, int first_token, int tokens, int head,
                   const Scratch& s) {
  const KvSpec& spec = job.view.spec;
  const int32_t* positions = job.batch.positions();
  const int32_t* blocks = job.batch.block_table(job.group) +
                          static_cast<ptrdiff_t>(sequence) * job.batch.sizes.max_blocks;
  const int rows = tokens * job.sharing;
  AttentionTile tile{};
  tile.k_dim = spec.k_dim;
  tile.v_dim = job.layout.v_dim();
  tile.rows = rows;
  tile.q = s.q;
  tile.begin = s.begin;
  tile.end = s.end;
  tile.soft_cap = job.params.soft_cap;
  tile.max = s.max;
  tile.sum = s.sum;
  tile.acc = s.acc;

  int seen_begin = std::numeric_limits<int>::max();
  int seen_end = 0;
  for (int row = 0; row < rows; ++row) {
    const int token = first_token + row / job.sharing;
    const float* q =
        job.q.f32() + token * job.q.stride + (head * job.sharing + row % job.sharing) * spec.k_dim;
    for (int d = 0; d < spec.k_dim; ++d) s.q[row * spec.k_dim + d] = q[d] * job.params.scale;
    s.max[row] = -std::numeric_limits<float>::infinity();
    s.sum[row] = 0;
    const int end = positions[token] + 1;
    seen_end = std::max(seen_end, end);
    seen_begin = std::min(seen_begin, spec.window > 0 ? std::max(0, end - spec.window) : 0);
  }
  std::fill_n(s.acc, rows * tile.v_dim, 0.0f);

  const auto kernel = spec.dtype == DType::kF16 ? job.kernel.attend_f16 : job.kernel.attend_f32;
  for (int index = seen_begin / kKvTile; index * kKvTile < seen_end; ++index) {
    const int base = index * kKvTile;
    int begin = kKvTile;
    int end = 0;
    for (int row = 0; row < rows; ++row) {
      const int sees = positions[first_token + row / job.sharing] + 1;
      const int from = spec.window > 0 ? std::max(0, sees - spec.window) : 0;
      s.begin[row] = std::clamp(from - base, 0, kKvTile);
      s.end[row] = std::clamp(sees - base, 0, kKvTile);
      if (s.begin[row] < s.end[row]) {
        begin = std::min(begin, s.begin[row]);
        end = std::max(end, s.end[row]);
      }
    }
    if (begin >= end) continue;
    find_tile(job, blocks, head, index, begin, end, s.gathered, tile);
    kernel(tile);
  }
  for (int row = 0; row < rows; ++row) {
    float* y = job.y.f32() + (first_token + row / job.sharing) * job.y.stride +
               (head * job.sharing + row % job.sharing) * spec.v_dim;
    for (int d = 0; d < spec.v_dim; ++d) y[d] = s.acc[row * tile.v_dim + d] / s.sum[row];
  }
}

}  // namespace

void attention(ExecContext& ctx, const AttentionParams& params, const Batch& batch,
               const KvLayer& layer, const Tensor& q, const Tensor& y) {
  const ArenaScope scope(ctx.arena);
  const KvView& view = ctx.kv[static_cast<size_t>(layer.group)];
  const KvSpec& spec = view.spec;
  const int sharing = params.heads / spec.kv_heads;
  const Job job{kernels(ctx.device), params,      batch,   view, KvLayout(view),
                layer.index,         layer.group, sharing, q,    y};
  const int threads = ctx.pool.size();
  const int rows = kTokensPerTask * sharing;
  const int v_dim = job.layout.v_dim();
  const Tensor queries = ctx.tensor(threads * rows, spec.k_dim);
  const Tensor acc = ctx.tensor(threads * rows, v_dim);
  const Tensor state = ctx.tensor(threads, 4 * rows);
  const Tensor gathered = ctx.tensor(threads, kKvTile * (spec.k_dim + v_dim));
  if (ctx.dry_run) return;

  const int32_t* offsets = batch.query_offsets();
  const int runs = (batch.sizes.max_queries + kTokensPerTask - 1) / kTokensPerTask;
  const int64_t tasks = static_cast<int64_t>(batch.sizes.num_sequences) * runs * spec.kv_heads;
  ctx.pool.parallel_for(tasks, [&](int64_t task, int thread) {
    const int head = static_cast<int>(task % spec.kv_heads);
    const int run = static_cast<int>(task / spec.kv_heads % runs);
    const int sequence = static_cast<int>(task / spec.kv_heads / runs);
    const int first = offsets[sequence] + run * kTokensPerTask;
    const int tokens = std::min(kTokensPerTask, offsets[sequence + 1] - first);
    if (tokens <= 0) return;
    float* s = state.f32() + static_cast<ptrdiff_t>(thread) * state.stride;
    attend_tokens(
        job, sequence, first, tokens, head,
        Scratch{queries.f32() + static_cast<ptrdiff_t>(thread) * rows * spec.k_dim,
                acc.f32() + static_cast<ptrdiff_t>(thread) * rows * v_dim, s, s + rows,
                reinterpret_cast<int*>(s + 2 * rows), reinterpret_cast<int*>(s + 3 * rows),
                reinterpret_cast<char*>(gathered.f32() + thread * gathered.stride)});
  });
}

}  // namespace tinyvllm::ops::cpu
