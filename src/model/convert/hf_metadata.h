// config.json as the metadata of a GGUF file: what the architecture read of it, under GGUF's keys,
// and the rotary positions, which GGUF describes in its own way.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "io/gguf_pairs.h"
#include "io/model_files.h"
#include "model/decoder_config.h"
#include "model/listing.h"
#include "model/registry.h"

namespace tinyvllm {

// Small tensors of a GGUF file that Hugging Face has as numbers in config.json.
struct FactorTable {
  std::string name;
  std::vector<float> values;
};

struct HfDescription {
  const Architecture* architecture = nullptr;
  DecoderConfig config;
  ModelListing listing;
  GgufPairs pairs;  // all but the tokenizer's
  std::vector<FactorTable> tables;
};

// The device and the pool are not used; loaders want them.
Result<HfDescription> describe_hf(const ModelFiles& files, Device& device, ThreadPool& pool);

}  // namespace tinyvllm
