// Writes a model as one GGUF file of a type, all threads at work: rows are read as floats and
// quantized slab by slab; what has its type already is copied as it is.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/thread_pool.h"
#include "model/convert/file_type.h"
#include "model/convert/gguf_model.h"

namespace tinyvllm {

struct WriteOptions {
  bool pure = false;  // no mix: every matrix gets the base type
  // Called now and then with the tensor being written and the elements done; false stops the work,
  // and no file appears.
  std::function<bool(std::string_view tensor, int64_t done, int64_t total)> progress;
};

struct WriteReport {
  std::vector<GgufTensor> tensors;
  int64_t parameters = 0;
  uint64_t file_bytes = 0;
  int64_t requantized = 0;  // tensors that were quantized before, whose errors add up
};

Result<WriteReport> write_gguf(GgufModel& model, const FileType& type, const std::string& path,
                               ThreadPool& pool, const WriteOptions& options);

}  // namespace tinyvllm
