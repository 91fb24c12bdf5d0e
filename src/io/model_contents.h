// What ModelFiles holds, and the two ways to fill it. Inside io only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/mapped_file.h"
#include "io/model_files.h"

namespace tinyvllm {

struct ModelContents {
  std::string path;
  ModelFormat format = ModelFormat::kGguf;
  bool in_memory = false;
  std::vector<std::unique_ptr<MappedFile>> weight_files;  // WeightTensor::file counts these
  std::vector<std::unique_ptr<MappedFile>> text_files;    // tokenizer and chat template
  std::vector<std::unique_ptr<std::byte[]>> aligned;  // tensors that lie unaligned in their file
  Metadata metadata;
  std::vector<GgufPair> gguf_pairs;  // empty for folders
  WeightSource weights;
  TokenizerData tokenizer;
  GenerationDefaults generation_defaults;
};

// A .gguf; when it is a part of a split file, all parts (gguf_files.cc).
Status open_gguf(const std::string& path, ModelContents& contents);
Status adopt_gguf_file(std::unique_ptr<MappedFile> file, ModelContents& contents);

// A Hugging Face folder: all of it, or what concerns text (hf_folder.cc).
Status open_hf_folder(const std::string& path, ModelContents& contents);
Status open_hf_tokenizer(const std::string& path, ModelContents& contents);

}  // namespace tinyvllm
