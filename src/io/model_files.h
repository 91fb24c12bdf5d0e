// A model as it lies on disk: a GGUF file (or its shards), or a Hugging Face folder. Opening maps
// the files and checks their structure; tensor bytes are not touched. Owns the maps, so everything
// it hands out lives as long as it does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
#include "io/gguf_pairs.h"
#include "io/mapped_file.h"
#include "io/metadata.h"
#include "io/weight_source.h"

namespace tinyvllm {

enum class ModelFormat { kGguf, kHuggingFace };

// Sampling defaults that the model's author recommends (generation_config.json); absent = no
// opinion.
struct GenerationDefaults {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k;
};

struct ModelContents;

class ModelFiles {
 public:
  ~ModelFiles();

  // `path`: a .gguf (any shard of a split one), or a folder.
  static Result<std::unique_ptr<ModelFiles>> open(const std::string& path);

  // The same for what concerns text alone: a folder needs neither config.json nor weights, and its
  // weights are not opened.
  static Result<std::unique_ptr<ModelFiles>> open_tokenizer(const std::string& path);

  // A GGUF file that was made in memory.
  static Result<std::unique_ptr<ModelFiles>> adopt_gguf(std::unique_ptr<MappedFile> file);

  // The text of a config.json and nothing else: sizes, but no weights. `name` is for errors.
  static Result<std::unique_ptr<ModelFiles>> from_config(std::string_view json,
                                                         const std::string& name);

  ModelFormat format() const;
  bool in_memory() const;  // and nowhere else: bytes that are let go of are lost
  const std::string& path() const;
  uint64_t file_bytes() const;  // of all files with weights in them

  const Metadata& metadata() const;
  // Its bytes in a GGUF file, the vocabulary's included; empty for folders.
  const std::vector<GgufPair>& gguf_pairs() const;
  const WeightSource& weights() const;
  const TokenizerData& tokenizer() const;
  const GenerationDefaults& generation_defaults() const;

 private:
  ModelFiles();

  std::unique_ptr<ModelContents> contents_;
};

}  // namespace tinyvllm
