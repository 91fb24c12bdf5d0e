// The kernels, as the host sees them: raw pointers, sizes and the stream they are enqueued on. One
// .cu file each, under the name of the op. Activations between ops are halves; what is added up
// over the layers (the residual) stays float.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "ops/block_scales.h"
#include "ops/cuda/packed.h"
#include "ops/epilogue.h"

struct CUstream_st;

namespace tinyvllm::ops::cuda {

using Stream = CUstream_st*;

// A matrix of floats or halves whose rows may lie apart.
struct Rows {
  void* data = nullptr;
  bool is_half = false;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements
};

// What is done to x before it is multiplied. Without weights: nothing.
struct NormArgs {
  const float* weight = nullptr;  // [width]
  const float* bias = nullptr;    // [width]; LayerNorm's
  float eps = 0;
  bool subtract_mean = false;
};

// norm.cu
void norm_rows(const NormArgs& norm, const Rows& x, const Rows& y, bool add, Stream stream);
void norm_heads(const NormArgs& norm, int width, const Rows& x, Stream stream);

// embedding.cu
// An id below zero stands for previous[~id].
void embed(const Packed& table, const int32_t* ids, const int32_t* previous, float scale,
           const Rows& x, Stream stream);
void gather_rows(const int32_t* rows, const Rows& x, const Rows& y, Stream stream);

// Rows as a file has them, on the card.
struct UploadedRows {
  DType dtype = DType::kF16;
  const char* data = nullptr;  // aligned to 16
  int64_t bytes = 0;
  int64_t row_bytes = 0;
  uint64_t host = 0;  // where the host has them
  Packed to;          // the planes they are packed to; none: they stay as they are
};

// pack.cu
bool can_pack(DType dtype);
Packed packed_form(DType dtype, int64_t out, int64_t in);  // sizes; planes are still null
void pack(const UploadedRows* rows, size_t count, Stream stream);
void load_packing();  // the kernels, before the first is enqueued
void unpack(const Packed& from, void* halves, Stream stream);  // [out, stride] halves

// finite.cu: notes the lowest row, as an address in the host's memory, that holds a NaN, an
// infinity or a scale that is one.
void look_for_not_finite(const UploadedRows* rows, size_t count, uint64_t* first, Stream stream);
void load_looking();

// gemm/few_rows.cu: y = epilogue(W norm(x) + bias) for at most kFewRows rows of x. With a gate,
// `up` is the second matrix and bias is [gate.out + up.out].
constexpr int kFewRows = 8;
bool few_rows_fit(int64_t rows, int64_t in);
void few_rows(const Packed& w, const Packed* up, const float* bias, Epilogue epilogue,
              const NormArgs& norm, const Rows& x, const Rows& y, Stream stream);

// gemm/tile.cu: y = W x with one fixed tile and order of summation, whatever the number of rows.
void tile_gemm(const Packed& w, const Rows& x, const Rows& y, bool add, Stream stream);

// gate.cu: y = gate(x[:, :n]) · x[:, n:];  and x += bias, y += x.
void gate_rows(Epilogue gate, const float* bias, const Rows& x, const Rows& y, Stream stream);
void add_bias(const float* bias, const Rows& x, Stream stream);
void clear(void* data, size_t bytes, Stream stream);
void copy(void* to, const void* from, size_t bytes, Stream stream);  // on the card

// rope.cu
constexpr int kWidestHead = 512;
struct RopeArgs {
  static constexpr int kMaxPairs = kWidestHead / 2;
  bool adjacent = false;
  int head_dim = 0;
  int rotary_dim = 0;
  float magnitude = 1;
  float frequencies[kMaxPairs] = {};
};

// A layer's K and V in the cache: [block][K: head, token, k_dim; V: head, token, v_dim], and behind
// those of bytes the scale of each, floats: [K: head, token; V: head, token].
struct KvArgs {
  char* data = nullptr;  // of this layer, in block 0
  int64_t block_bytes = 0;
  DType dtype = DType::kF16;  // or F32, or I8
  int block_size = 0;
  int kv_heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  int window = 0;
};
constexpr int kMostBytesOfHead = 256;  // of K or V, where they are bytes
void rope_kv_write(const RopeArgs& rope, const KvArgs& kv, const int32_t* positions,
                   const int32_t* slots, const Rows& q, const Rows& k, const Rows& v,
                   Stream stream);

// attention/
struct AttentionArgs {
  KvArgs kv;
  int heads = 0;
  float scale = 1;
  float soft_cap = 0;
  const int32_t* positions = nullptr;       // [tokens]
  const int32_t* token_sequence = nullptr;  // [tokens]
  const int32_t* query_offsets = nullptr;   // [sequences + 1]
  const int32_t* block_table = nullptr;     // [sequences, max_blocks]
  int num_sequences = 0;
  int max_blocks = 0;
  int max_queries = 0;
};
// One query token at a time, the cache cut into splits at fixed positions. `partial` has room for
// split_bytes().
constexpr int kSplitTokens = 64;
int64_t split_bytes(const AttentionArgs& args, int64_t tokens);
void attention_by_token(const AttentionArgs& args, const Rows& q, const Rows& y, void* partial,
                        Stream stream);
// Tiles of query tokens on the tensor cores.
bool supports_tiles(const AttentionArgs& args);
void attention_by_tile(const AttentionArgs& args, const Rows& q, const Rows& y, Stream stream);

// softmax.cu
void softmax_rows(const Rows& x, const Rows& y, Stream stream);
void top_k_rows(const Rows& x, int k, int32_t* ids, float* values, Stream stream);

// moe.cu: the router's choice, then y += what the chosen experts make of x. Gates
// and ups are of one form, downs of one; the three are arrays on the card.
void route(const Rows& logits, int used, bool normalize, int32_t* experts, float* weights,
           Stream stream);
struct ExpertArgs {
  Form up_form = Form::kHalf;
  Form down_form = Form::kHalf;
  const Packed* gates = nullptr;
  const Packed* ups = nullptr;
  const Packed* downs = nullptr;
  const int32_t* experts = nullptr;  // [tokens, used]
  const float* weights = nullptr;    // [tokens, used]
  int used = 0;
  Epilogue gate = Epilogue::kSiluGate;
};
// x: [tokens, hidden], hidden: [tokens · used, ffn] scratch, y: [tokens, hidden]
void run_experts(const ExpertArgs& args, const Rows& x, const Rows& hidden, const Rows& y,
                 Stream stream);

}  // namespace tinyvllm::ops::cuda
