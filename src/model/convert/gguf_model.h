// A model on its way into a GGUF file: metadata in the file's bytes, tensors under GGUF's names
// with the rows they will have. What differs between formats (names, the order of rows, stacked
// experts) is settled here; what type the numbers get is not.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "io/gguf_pairs.h"
#include "io/model_files.h"

namespace tinyvllm {

struct GgufSource {
  std::string name;
  DType dtype = DType::kF32;       // of the rows as they lie
  Shape shape;                     // outermost first
  DType own_type = DType::kF32;    // in files whose type does not concern this tensor
  std::vector<TensorView> parts;   // one after the other along the outermost dimension
  std::vector<int64_t> row_order;  // row r of each part is its row row_order[r]; empty: as it is
  float offset = 0;                // added to every number

  const void* row(int64_t r) const;
};

struct GgufModel {
  GgufPairs pairs;
  std::vector<GgufSource> tensors;      // pointing into the files, which must outlive this, or
  std::deque<std::vector<float>> made;  // at numbers that no file holds
};

// Any GGUF file, of whatever architecture, or a Hugging Face folder of one that we know.
Result<GgufModel> gguf_model_of(const ModelFiles& files, Device& device, ThreadPool& pool);

}  // namespace tinyvllm
