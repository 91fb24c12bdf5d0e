// How a model is loaded, whatever its architecture.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "model/listing.h"
#include "tinyvllm/engine_options.h"

namespace tinyvllm {

struct ModelOptions {
  int64_t max_model_len = 0;  // in use, for rope variants that depend on it; 0: the trained context
  DType kv_dtype = DType::kF16;
  LoadProgress progress = nullptr;
  ModelListing* listing = nullptr;  // set: weights are listed, not bound; the model cannot run
};

}  // namespace tinyvllm
