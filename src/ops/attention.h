// Causal attention over the paged cache, for ragged batches: every query token attends to the
// cached tokens of its own sequence up to its own position (and inside the window, if there is
// one). K and V are always read back from the cache in the stored dtype, the current chunk's too,
// so a token's result does not depend on how its prompt was cut.
#pragma once

#include "core/batch.h"
#include "core/kv.h"
#include "device/exec_context.h"

namespace tinyvllm::ops {

struct AttentionParams {
  int heads = 0;
  float scale = 1;     // of q·k
  float soft_cap = 0;  // logits → cap · tanh(logits / cap); 0: off
};

// q, y: [tokens, heads · head_dim]
void attention(ExecContext& ctx, const AttentionParams& params, const Batch& batch,
               const KvLayer& layer, const Tensor& q, const Tensor& y);

// Whether a device has kernels for heads like these.
Status check_heads(const Device& device, const KvSpec& spec);

// Bytes of one block of a group, all its layers: the layout is this op's business.
size_t kv_block_bytes(const KvSpec& spec, int block_size);

}  // namespace tinyvllm::ops
