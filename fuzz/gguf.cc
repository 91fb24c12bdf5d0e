// Any bytes as a GGUF file: first the reader over exactly these bytes, so that the address
// sanitizer sees one byte too far, then the whole way of `tinyvllm inspect` through a mapped file.
#include "fuzz/touch.h"
#include "io/gguf_reader.h"
#include "io/model_files.h"
#include "io/model_summary.h"

using namespace tinyvllm;

namespace {

constexpr std::string_view kSeparator = "\x1E\x1E\x1E\x1E";

void open(const std::string& path) {
  const auto model = ModelFiles::open(path);
  if (model.ok()) fuzz::touch(*model.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Folder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const size_t cut = bytes.find(kSeparator); cut != std::string_view::npos) {
    folder.write("x-00001-of-00002.gguf", bytes.substr(0, cut));
    folder.write("x-00002-of-00002.gguf", bytes.substr(cut + kSeparator.size()));
    open(folder.path("x-00002-of-00002.gguf"));
    return 0;
  }
  Result<GgufContents> contents = read_gguf(bytes);
  if (!contents.ok()) return 0;
  fuzz::touch(contents.value().metadata);
  for (const WeightTensor& tensor : contents.value().tensors) fuzz::touch(tensor);
  const auto vocabulary = take_gguf_vocabulary(contents.value().metadata);
  if (vocabulary.ok() && vocabulary.value()) fuzz::touch(*vocabulary.value());
  folder.write("x.gguf", bytes);
  open(folder.path("x.gguf"));
  return 0;
}
