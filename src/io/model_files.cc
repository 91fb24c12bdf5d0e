#include "io/model_files.h"

#include <filesystem>

#include "io/json.h"
#include "io/model_contents.h"

namespace tinyvllm {
namespace {

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace

ModelFiles::ModelFiles() : contents_(std::make_unique<ModelContents>()) {}
ModelFiles::~ModelFiles() = default;

Result<std::unique_ptr<ModelFiles>> ModelFiles::open(const std::string& path) {
  std::unique_ptr<ModelFiles> files(new ModelFiles);
  files->contents_->path = path;
  if (is_folder(path)) {
    TRY(open_hf_folder(path, *files->contents_));
  } else {
    TRY(open_gguf(path, *files->contents_));
  }
  return files;
}

Result<std::unique_ptr<ModelFiles>> ModelFiles::open_tokenizer(const std::string& path) {
  if (!is_folder(path)) return open(path);
  std::unique_ptr<ModelFiles> files(new ModelFiles);
  files->contents_->path = path;
  TRY(open_hf_tokenizer(path, *files->contents_));
  return files;
}

Result<std::unique_ptr<ModelFiles>> ModelFiles::adopt_gguf(std::unique_ptr<MappedFile> file) {
  std::unique_ptr<ModelFiles> files(new ModelFiles);
  files->contents_->path = file->path();
  files->contents_->in_memory = true;
  TRY(adopt_gguf_file(std::move(file), *files->contents_));
  return files;
}

Result<std::unique_ptr<ModelFiles>> ModelFiles::from_config(std::string_view json,
                                                            const std::string& name) {
  std::unique_ptr<ModelFiles> files(new ModelFiles);
  files->contents_->path = name;
  files->contents_->format = ModelFormat::kHuggingFace;
  Result<Metadata> metadata = read_json_metadata(json);
  if (!metadata.ok()) return error(printable(name, 4096), ": ", metadata.message());
  files->contents_->metadata = std::move(metadata).value();
  return files;
}

ModelFormat ModelFiles::format() const { return contents_->format; }
bool ModelFiles::in_memory() const { return contents_->in_memory; }
const std::string& ModelFiles::path() const { return contents_->path; }
const Metadata& ModelFiles::metadata() const { return contents_->metadata; }
const std::vector<GgufPair>& ModelFiles::gguf_pairs() const { return contents_->gguf_pairs; }
const WeightSource& ModelFiles::weights() const { return contents_->weights; }
const TokenizerData& ModelFiles::tokenizer() const { return contents_->tokenizer; }
const GenerationDefaults& ModelFiles::generation_defaults() const {
  return contents_->generation_defaults;
}

uint64_t ModelFiles::file_bytes() const {
  uint64_t total = 0;
  for (const auto& file : contents_->weight_files) total += file->size();
  return total;
}

}  // namespace tinyvllm
