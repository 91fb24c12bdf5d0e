#include "io/model_files.h"

#include <filesystem>

#include "io/gguf_reader.h"
#include "io/mapped_file.h"

namespace tinyvllm {

ModelFiles::ModelFiles() = default;
ModelFiles::~ModelFiles() = default;

Result<std::unique_ptr<ModelFiles>> ModelFiles::open(const std::string& path) {
  std::unique_ptr<ModelFiles> files(new ModelFiles);
  files->path_ = path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return error(printable(path, 4096), " is a folder; expected a .gguf file");
  }
  TRY(files->open_gguf());
  return files;
}

uint64_t ModelFiles::file_bytes() const {
  uint64_t total = 0;
  for (const auto& map : maps_) total += map->size();
  return total;
}

Status ModelFiles::open_gguf() {
  format_ = ModelFormat::kGguf;
  TRY_ASSIGN(std::unique_ptr<MappedFile> map, MappedFile::open(path_));
  Result<GgufContents> contents = read_gguf(map->bytes());
  if (!contents.ok()) return error(printable(path_, 4096), ": ", contents.message());
  metadata_ = std::move(contents.value().metadata);
  for (WeightTensor& tensor : contents.value().tensors) {
    CHECK(weights_.insert(std::move(tensor))) << "read_gguf refuses duplicates";
  }
  maps_.push_back(std::move(map));
  Status status = read_gguf_tokenizer();
  if (!status.ok()) return error(printable(path_, 4096), ": ", status.message());
  return Status();
}

Status ModelFiles::read_gguf_tokenizer() {
  TRY_ASSIGN(tokenizer_.gguf, take_gguf_vocabulary(metadata_));
  TRY_ASSIGN(tokenizer_.chat_template, metadata_.string_or("tokenizer.chat_template", ""));
  return Status();
}

}  // namespace tinyvllm
