// A model as it lies on disk: a GGUF file (or its shards), or a Hugging Face folder. Opening maps
// the files and checks their structure; tensor bytes are not touched. Owns the maps, so everything
// it hands out lives as long as it does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_data.h"
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

class MappedFile;

class ModelFiles {
 public:
  ~ModelFiles();

  // `path`: a .gguf (any shard of a split one), or a folder.
  static Result<std::unique_ptr<ModelFiles>> open(const std::string& path);

  ModelFormat format() const { return format_; }
  const std::string& path() const { return path_; }
  uint64_t file_bytes() const;  // of all files with weights in them

  const Metadata& metadata() const { return metadata_; }
  const WeightSource& weights() const { return weights_; }
  const TokenizerData& tokenizer() const { return tokenizer_; }
  const GenerationDefaults& generation_defaults() const { return generation_defaults_; }

 private:
  ModelFiles();
  Status open_gguf();
  Status read_gguf_tokenizer();

  std::string path_;
  ModelFormat format_ = ModelFormat::kGguf;
  std::vector<std::unique_ptr<MappedFile>> maps_;
  Metadata metadata_;
  WeightSource weights_;
  TokenizerData tokenizer_;
  GenerationDefaults generation_defaults_;
};

}  // namespace tinyvllm
