// Rows of a table: token ids to vectors on the way in, wanted rows picked out on the way to the
// head.
#pragma once

#include <memory>

#include "base/result.h"
#include "core/batch.h"
#include "device/exec_context.h"

namespace tinyvllm::ops {

// Only the rows looked up are ever read, so on the CPU the table stays where the file's map has it.
struct Embedding {
  TensorView table;                 // [vocabulary, width]
  std::shared_ptr<void> on_device;  // a card's own copy
};
Result<Embedding> make_embedding(Device& device, const TensorView& table);

// x[t] = scale · table[token_ids[t]].  x: [tokens, width]
void embedding(ExecContext& ctx, const Embedding& e, const Batch& batch, float scale,
               const Tensor& x);

// y[i] = x[logit_rows[i]].  x: [tokens, width], y: [logits, width]
void gather_logit_rows(ExecContext& ctx, const Batch& batch, const Tensor& x, const Tensor& y);

}  // namespace tinyvllm::ops
