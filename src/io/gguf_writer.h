// Writes a GGUF file: metadata and the list of tensors first, then the tensors' bytes as they are
// made, in order. The file appears under its name when it is complete.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "io/gguf_pairs.h"
#include "io/new_file.h"

namespace tinyvllm {

struct GgufTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // outermost first

  uint64_t bytes() const { return TensorView{nullptr, dtype, shape}.bytes(); }
};

// Everything before the tensors' bytes, and where those go.
struct GgufLayout {
  std::string header;             // up to the first tensor, padding included
  std::vector<uint64_t> offsets;  // of each tensor, from the beginning of the file
  uint64_t total_bytes = 0;
};
GgufLayout lay_out_gguf(const GgufPairs& pairs, const std::vector<GgufTensor>& tensors);

class GgufWriter {
 public:
  static Result<std::unique_ptr<GgufWriter>> create(const std::string& path, const GgufPairs& pairs,
                                                    std::vector<GgufTensor> tensors);

  // The next bytes of the tensors, pieces of any size within a tensor.
  Status write(const void* data, size_t bytes);

  Status finish();
  uint64_t total_bytes() const { return layout_.total_bytes; }

 private:
  GgufWriter() = default;
  Status pad_to(uint64_t offset);

  std::unique_ptr<NewFile> file_;
  std::vector<GgufTensor> tensors_;
  GgufLayout layout_;
  size_t current_ = 0;  // the tensor being written
  uint64_t at_ = 0;     // bytes written so far
};

}  // namespace tinyvllm
