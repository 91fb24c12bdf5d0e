// How a model is loaded, whatever its architecture.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/tensor.h"
#include "model/listing.h"
#include "tinyvllm/engine_options.h"

namespace tinyvllm {

// What loading did with the weights.
struct PreparationStats {
  int mapped = 0;           // matrices that are used where the file's map has them
  int packed = 0;           // that were rewritten for the device
  uint64_t bytes = 0;       // of all tensors
  uint64_t held_bytes = 0;  // that the device keeps of them, as it packed them
  TensorView by_row;        // a table that is packed and whose rows are looked up in the file
  int64_t check_ns = 0;
  int64_t pack_ns = 0;
};

struct ModelOptions {
  int64_t max_model_len = 0;  // in use, for rope variants that depend on it; 0: the trained context
  DType kv_dtype = DType::kF16;
  LoadProgress progress = nullptr;
  ModelListing* listing = nullptr;    // set: weights are listed, not bound; the model cannot run
  PreparationStats* stats = nullptr;  // where to count, if anywhere
};

}  // namespace tinyvllm
