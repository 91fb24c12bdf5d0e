// A model: weights bound to a device and a forward pass. Architectures live in arch/, one file
// each, and meet the engine only through this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/kv.h"
#include "device/exec_context.h"

namespace tinyvllm {

// What the engine needs to know of any model.
struct ModelInfo {
  std::string architecture;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t vocab_size = 0;
  int64_t context_length = 0;  // that it was trained for
  std::vector<KvSpec> kv_groups;
  size_t weight_bytes = 0;  // that one decoded token reads
};

struct Outputs {
  Tensor logits;  // [num_logits, vocab_size] F32
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;

  // Enqueues one step. Does not read the batch on the host, loop over sequences, or allocate.
  virtual void forward(ExecContext& ctx, const Batch& batch, const Outputs& outputs) const = 0;
};

}  // namespace tinyvllm
