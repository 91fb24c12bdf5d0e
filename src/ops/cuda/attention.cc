// Positions into Q and K, K and V into the cache, and the two ways to attend: by tiles of query
// tokens, for prompts, and token by token.
#include <algorithm>

#include "ops/cuda/host.h"
#include "ops/cuda/ops.h"

namespace tinyvllm::ops::cuda {
namespace {

// From here on a sequence's queries fill enough of a tile to be worth the tensor cores.
constexpr int kTileQueries = 16;

KvArgs kv_args(const ExecContext& ctx, const KvLayer& layer) {
  const KvView& view = ctx.kv[static_cast<size_t>(layer.group)];
  const size_t block_bytes = kv_block_bytes(view.spec, view.block_size);
  const size_t layer_bytes = block_bytes / static_cast<size_t>(view.spec.layers);
  KvArgs args;
  args.data = static_cast<char*>(view.data) + layer_bytes * static_cast<size_t>(layer.index);
  args.block_bytes = static_cast<int64_t>(block_bytes);
  args.dtype = view.spec.dtype;
  args.block_size = view.block_size;
  args.kv_heads = view.spec.kv_heads;
  args.k_dim = view.spec.k_dim;
  args.v_dim = view.spec.v_dim;
  args.window = view.spec.window;
  return args;
}

AttentionArgs attention_args(const ExecContext& ctx, const AttentionParams& params,
                             const Batch& batch, const KvLayer& layer) {
  AttentionArgs args;
  args.kv = kv_args(ctx, layer);
  args.heads = params.heads;
  args.scale = params.scale;
  args.soft_cap = params.soft_cap;
  args.num_sequences = batch.sizes.num_sequences;
  args.max_blocks = batch.sizes.max_blocks;
  args.max_queries = batch.sizes.max_queries;
  return args;
}

bool uses_tiles(const ExecContext& ctx, const AttentionArgs& args, const Tensor& q) {
  return args.max_queries >= kTileQueries && q.dtype == DType::kF16 && q.stride % 2 == 0 &&
         supports_tiles(args) && !card(ctx).deterministic();
}

}  // namespace

int widest_head(DType cache) { return cache == DType::kI8 ? kMostBytesOfHead : kWidestHead; }

void rope_kv_write(ExecContext& ctx, const Rope& rope, const Batch& batch, const KvLayer& layer,
                   const Tensor& q, const Tensor& k, const Tensor& v) {
  const KvArgs kv = kv_args(ctx, layer);
  CHECK(rope.frequencies.size() <= RopeArgs::kMaxPairs) << "heads of " << rope.head_dim;
  RopeArgs args;
  args.adjacent = rope.pairing == RopePairing::kAdjacent;
  args.head_dim = rope.head_dim;
  args.rotary_dim = rope.rotary_dim;
  args.magnitude = rope.magnitude;
  std::copy(rope.frequencies.begin(), rope.frequencies.end(), args.frequencies);
  rope_kv_write(args, kv, batch.positions(), batch.slots(layer.group), rows(q), rows(k), rows(v),
                stream_of(ctx));
}

const char* attention_reason(const ExecContext& ctx, const AttentionParams& params,
                             const Batch& batch, const KvLayer& layer, const Tensor& q) {
  return uses_tiles(ctx, attention_args(ctx, params, batch, layer), q)
             ? "many queries: tiles on the tensor cores"
             : "token by token, the cache in splits";
}

void attention(ExecContext& ctx, const AttentionParams& params, const Batch& batch,
               const KvLayer& layer, const Tensor& q, const Tensor& y) {
  AttentionArgs args = attention_args(ctx, params, batch, layer);
  const bool tiles = uses_tiles(ctx, args, q);
  const ArenaScope scope(ctx.arena);
  // A dry run is the largest step, but one of many short sequences may need more than tiles do.
  const int64_t by_token =
      ctx.dry_run ? std::min<int64_t>(q.rows, args.num_sequences * kTileQueries) : q.rows;
  void* partial = nullptr;
  if (!tiles || ctx.dry_run) {
    partial = ctx.arena.take(static_cast<size_t>(
        split_bytes(args, card(ctx).deterministic() || !supports_tiles(args) ? q.rows : by_token)));
  }
  if (ctx.dry_run) return;
  args.positions = batch.positions();
  args.token_sequence = batch.token_sequence();
  args.query_offsets = batch.query_offsets();
  args.block_table = batch.block_table(layer.group);
  if (tiles) {
    attention_by_tile(args, rows(q), rows(y), stream_of(ctx));
  } else {
    attention_by_token(args, rows(q), rows(y), partial, stream_of(ctx));
  }
}

}  // namespace tinyvllm::ops::cuda
