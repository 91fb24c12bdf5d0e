// Work is cut into (run of query tokens of one sequence, KV head); a task's rows are the queries of
// all heads that share the KV head. The cache is walked in splits of kSplit positions, each begun
// afresh and merged in ascending order: so threads may share one long sequence's splits, and a
// token's result is the same bits whether they do or not.
#include <algorithm>
#include <cstring>
#include <limits>

#include "ops/cpu/kernel_table.h"
#include "ops/cpu/kv_layout.h"
#include "ops/cpu/ops.h"

namespace tinyvllm::ops::cpu {
namespace {

constexpr int kSplit = 1024;      // positions; a multiple of the tile
constexpr int kRowsPerTask = 32;  // of queries: that often a tile of K and V is read from L1
constexpr size_t kMaxPartials = size_t{8} << 20;  // bytes of states that wait to be merged

struct Job {
  const Kernels& kernel;
  const AttentionParams& params;
  const Batch& batch;
  const KvView& view;
  const KvLayout layout;
  const KvLayer& layer;
  const Tensor& q;
  const Tensor& y;
  const int sharing;  // query heads per KV head
  const int tokens_per_task;

  int rows_per_task() const { return tokens_per_task * sharing; }
  int v_dim() const { return layout.v_dim(); }
  size_t state_floats(int rows) const {
    return static_cast<size_t>(rows) * static_cast<size_t>(v_dim() + 2);
  }
};

// Query tokens [first, first + tokens) of one sequence, and the heads that share a KV head.
struct Task {
  int sequence;
  int first;
  int tokens;
  int head;

  int rows(const Job& job) const { return tokens * job.sharing; }
};

AttentionState make_state(const Job& job, float* memory, int rows) {
  AttentionState state{memory, memory + rows, memory + 2 * rows};
  std::fill_n(state.max, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(state.sum, static_cast<size_t>(rows) * static_cast<size_t>(1 + job.v_dim()), 0.0f);
  return state;
}

// One thread's place for a task.
struct Scratch {
  float* q;        // [rows, k_dim]
  float* states;   // two: a split's and the total's
  int* begin;      // [rows]
  int* end;        // [rows]
  char* gathered;  // a tile, when blocks are not whole groups of 8 tokens
};

class ScratchPool {
 public:
  ScratchPool(ExecContext& ctx, const Job& job) : job_(job) {
    const int threads = ctx.pool.size();
    const int rows = job.rows_per_task();
    q_ = ctx.tensor(threads, static_cast<int64_t>(rows) * job.view.spec.k_dim);
    states_ = ctx.tensor(threads, static_cast<int64_t>(2 * job.state_floats(rows)));
    ranges_ = ctx.tensor(threads, 2 * rows);
    gathered_ = ctx.tensor(threads, kKvTile * (job.view.spec.k_dim + job.v_dim() + 2));
  }
  Scratch of(int thread) const {
    int* ranges = reinterpret_cast<int*>(ranges_.f32() + thread * ranges_.stride);
    return Scratch{q_.f32() + thread * q_.stride, states_.f32() + thread * states_.stride, ranges,
                   ranges + job_.rows_per_task(),
                   reinterpret_cast<char*>(gathered_.f32() + thread * gathered_.stride)};
  }

 private:
  const Job& job_;
  Tensor q_;
  Tensor states_;
  Tensor ranges_;
  Tensor gathered_;
};

const int32_t* blocks_of(const Job& job, const Task& task) {
  return job.batch.block_table(job.layer.group) +
         static_cast<ptrdiff_t>(task.sequence) * job.batch.sizes.max_blocks;
}

// Copies tokens [begin, end) of a tile to where one large block would have them.
void gather_tile(const Job& job, const Task& task, int base, int begin, int end, char* to,
                 AttentionTile& t) {
  const size_t element = job.layout.element_bytes();
  const auto bytes = [&](int elements) { return static_cast<size_t>(elements) * element; };
  const size_t scale = kv_scale_bytes(job.view.spec);
  const int32_t* blocks = blocks_of(job, task);
  const auto k_group = [&](int g) {
    return to + static_cast<size_t>(g) * job.layout.k_group_bytes();
  };
  const auto v_group = [&](int g) {
    return k_group(kKvTile / kKvLanes) + static_cast<size_t>(g) * job.layout.v_group_bytes();
  };
  for (int i = begin; i < end; ++i) {
    const int32_t block = blocks[(base + i) / job.view.block_size];
    const int offset = (base + i) % job.view.block_size;
    const auto from_lane = static_cast<size_t>(offset % kKvLanes);
    const auto to_lane = static_cast<size_t>(i % kKvLanes);
    const char* k_from = job.layout.k_group(job.layer.index, block, task.head, offset);
    const char* v_from = job.layout.v_group(job.layer.index, block, task.head, offset);
    char* k_to = k_group(i / kKvLanes);
    char* v_to = v_group(i / kKvLanes);
    for (int d = 0; d < t.k_dim; ++d) {
      std::memcpy(k_to + bytes(d * kKvLanes) + to_lane * element,
                  k_from + bytes(d * kKvLanes) + from_lane * element, element);
    }
    std::memcpy(v_to + to_lane * bytes(t.v_dim), v_from + from_lane * bytes(t.v_dim),
                bytes(t.v_dim));
    std::memcpy(k_to + job.layout.k_group_data() + to_lane * scale,
                k_from + job.layout.k_group_data() + from_lane * scale, scale);
    std::memcpy(v_to + job.layout.v_group_data() + to_lane * scale,
                v_from + job.layout.v_group_data() + from_lane * scale, scale);
  }
  for (int g = begin / kKvLanes; g * kKvLanes < end; ++g) {
    t.k[g] = k_group(g);
    t.v[g] = v_group(g);
  }
}

void find_tile(const Job& job, const Task& task, int base, int begin, int end, char* gathered,
               AttentionTile& t) {
  if (job.view.block_size % kKvLanes != 0) {
    return gather_tile(job, task, base, begin, end, gathered, t);
  }
  const int32_t* blocks = blocks_of(job, task);
  for (int g = begin / kKvLanes; g * kKvLanes < end; ++g) {
    const int position = base + g * kKvLanes;
    const int32_t block = blocks[position / job.view.block_size];
    const int offset = position % job.view.block_size;
    t.k[g] = job.layout.k_group(job.layer.index, block, task.head, offset);
    t.v[g] = job.layout.v_group(job.layer.index, block, task.head, offset);
  }
}

// Positions that a query token sees.
struct Seen {
  int begin;
  int end;
};
Seen seen_by(const Job& job, int token) {
  const int end = job.batch.positions()[token] + 1;
  const int window = job.view.spec.window;
  return {window > 0 ? std::max(0, end - window) : 0, end};
}
// Splits that some token of the task sees any of; positions ascend with tokens.
Seen splits_of(const Job& job, const Task& task) {
  return {seen_by(job, task.first).begin / kSplit,
          (seen_by(job, task.first + task.tokens - 1).end - 1) / kSplit + 1};
}

void load_queries(const Job& job, const Task& task, float* to) {
  const int k_dim = job.view.spec.k_dim;
  for (int row = 0; row < task.rows(job); ++row) {
    const float* q = job.q.f32() + (task.first + row / job.sharing) * job.q.stride +
                     (task.head * job.sharing + row % job.sharing) * k_dim;
    for (int d = 0; d < k_dim; ++d) to[row * k_dim + d] = q[d] * job.params.scale;
  }
}

auto attend_kernel(const Job& job) {
  switch (job.view.spec.dtype) {
    case DType::kI8:
      return job.kernel.attend_i8;
    case DType::kF16:
      return job.kernel.attend_f16;
    default:
      return job.kernel.attend_f32;
  }
}

// Adds the positions of one split to `state`.
void attend_split(const Job& job, const Task& task, int split, const Scratch& s,
                  const AttentionState& state) {
  const KvSpec& spec = job.view.spec;
  const int rows = task.rows(job);
  AttentionTile tile{};
  tile.k_dim = spec.k_dim;
  tile.v_dim = job.v_dim();
  tile.rows = rows;
  tile.q = s.q;
  tile.begin = s.begin;
  tile.end = s.end;
  tile.soft_cap = job.params.soft_cap;
  tile.state = state;
  const auto kernel = attend_kernel(job);

  const int last = std::min((split + 1) * kSplit, seen_by(job, task.first + task.tokens - 1).end);
  const int first = std::max(split * kSplit, seen_by(job, task.first).begin) / kKvTile * kKvTile;
  for (int base = first; base < last; base += kKvTile) {
    int begin = kKvTile;
    int end = 0;
    for (int row = 0; row < rows; ++row) {
      const Seen seen = seen_by(job, task.first + row / job.sharing);
      s.begin[row] = std::clamp(seen.begin - base, 0, kKvTile);
      s.end[row] = std::clamp(seen.end - base, 0, kKvTile);
      if (s.begin[row] >= s.end[row]) continue;
      begin = std::min(begin, s.begin[row]);
      end = std::max(end, s.end[row]);
    }
    if (begin >= end) continue;
    find_tile(job, task, base, begin, end, s.gathered, tile);
    kernel(tile);
  }
}

void store_result(const Job& job, const Task& task, const AttentionState& state) {
  const int v_dim = job.view.spec.v_dim;
  for (int row = 0; row < task.rows(job); ++row) {
    float* y = job.y.f32() + (task.first + row / job.sharing) * job.y.stride +
               (task.head * job.sharing + row % job.sharing) * v_dim;
    const float* acc = state.acc + row * job.v_dim();
    for (int d = 0; d < v_dim; ++d) y[d] = acc[d] / state.sum[row];
  }
}

void merge(const Job& job, const Task& task, const AttentionState& from, const AttentionState& to) {
  for (int row = 0; row < task.rows(job); ++row) {
    job.kernel.merge_attention(from, row, job.v_dim(), to, row);
  }
}

// All of a task on one thread.
void attend_task(const Job& job, const Task& task, const Scratch& s) {
  const int rows = task.rows(job);
  load_queries(job, task, s.q);
  const AttentionState total = make_state(job, s.states, rows);
  const Seen splits = splits_of(job, task);
  for (int split = splits.begin; split < splits.end; ++split) {
    const AttentionState part = make_state(job, s.states + job.state_floats(rows), rows);
    attend_split(job, task, split, s, part);
    merge(job, task, part, total);
  }
  store_result(job, task, total);
}

// Tasks are too few for the threads: they share each task's splits, then merge them.
void attend_by_splits(ExecContext& ctx, const Job& job, int64_t tasks, int splits,
                      const ScratchPool& scratch, float* partials, const auto& task_at) {
  const auto part_at = [&](int64_t unit) {
    return partials + static_cast<size_t>(unit) * job.state_floats(job.sharing);
  };
  ctx.pool.parallel_for(tasks * splits, [&](int64_t unit, int thread) {
    const Task task = task_at(unit / splits);
    if (task.tokens <= 0) return;
    const Scratch s = scratch.of(thread);
    load_queries(job, task, s.q);
    const AttentionState part = make_state(job, part_at(unit), job.sharing);
    const auto split = static_cast<int>(unit % splits);
    const Seen seen = splits_of(job, task);
    if (split >= seen.begin && split < seen.end) attend_split(job, task, split, s, part);
  });
  ctx.pool.parallel_for(
      tasks,
      [&](int64_t index, int thread) {
        const Task task = task_at(index);
        if (task.tokens <= 0) return;
        const AttentionState total = make_state(job, scratch.of(thread).states, job.sharing);
        const int rows = job.sharing;
        for (int64_t unit = index * splits; unit < (index + 1) * splits; ++unit) {
          float* part = part_at(unit);
          merge(job, task, {part, part + rows, part + 2 * rows}, total);
        }
        store_result(job, task, total);
      },
      "merge_splits");
}

}  // namespace

void attention(ExecContext& ctx, const AttentionParams& params, const Batch& batch,
               const KvLayer& layer, const Tensor& q, const Tensor& y) {
  const ArenaScope scope(ctx.arena);
  const KvView& view = ctx.kv[static_cast<size_t>(layer.group)];
  const int sharing = params.heads / view.spec.kv_heads;
  const Job job{kernels(ctx.device),
                params,
                batch,
                view,
                KvLayout(view),
                layer,
                q,
                y,
                sharing,
                std::max(1, kRowsPerTask / sharing)};
  const ScratchPool scratch(ctx, job);

  // Only steps of single query tokens are short of tasks; their states are one token's.
  const int threads = ctx.pool.size();
  const int splits = (batch.sizes.max_blocks * view.block_size + kSplit - 1) / kSplit;
  const size_t part_bytes = job.state_floats(sharing) * sizeof(float);
  const size_t bound = 2 * static_cast<size_t>(threads) * static_cast<size_t>(splits) * part_bytes;
  auto* partials = static_cast<float*>(ctx.arena.take(std::min(bound, kMaxPartials)));
  if (ctx.dry_run) return;

  const int32_t* offsets = batch.query_offsets();
  const int runs = (batch.sizes.max_queries + job.tokens_per_task - 1) / job.tokens_per_task;
  const int kv_heads = view.spec.kv_heads;
  const int64_t tasks = static_cast<int64_t>(batch.sizes.num_sequences) * runs * kv_heads;
  const auto task_at = [&](int64_t index) {
    const auto sequence = static_cast<int>(index / kv_heads / runs);
    const int run = static_cast<int>(index / kv_heads % runs);
    const int first = offsets[sequence] + run * job.tokens_per_task;
    return Task{sequence, first, std::min(job.tokens_per_task, offsets[sequence + 1] - first),
                static_cast<int>(index % kv_heads)};
  };
  if (batch.sizes.max_queries == 1 && splits > 1 && tasks <= 2 * threads && threads > 1 &&
      static_cast<size_t>(tasks * splits) * part_bytes <= kMaxPartials) {
    return attend_by_splits(ctx, job, tasks, splits, scratch, partials, task_at);
  }
  ctx.pool.parallel_for(tasks, [&](int64_t index, int thread) {
    const Task task = task_at(index);
    if (task.tokens > 0) attend_task(job, task, scratch.of(thread));
  });
}

}  // namespace tinyvllm::ops::cpu
