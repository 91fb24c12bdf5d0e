// What people call a file's type ("Q4_K_M") and what it means tensor by tensor. Names, numbers and
// mixes are llama.cpp's, so that a file of ours holds the same types as one of theirs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "io/gguf_writer.h"

namespace tinyvllm {

enum class Mix { kNone, kSmall, kMedium, kLarge };

struct FileType {
  const char* name;
  uint32_t id;  // general.file_type
  DType base;   // of most tensors
  Mix mix = Mix::kNone;
};

// By name in any case; "Q4_K" means Q4_K_M as it does for llama.cpp. The error lists all names.
Result<FileType> file_type_from_name(std::string_view name);

// The metadata that names it.
void set_file_type(const FileType& type, GgufPairs& pairs);

// The type of each tensor in a file of `type`. Tensors come with the types they have; what is not a
// weight matrix keeps its own. `pure`: no mix, every matrix gets the base type. Rows that do not
// divide into a type's blocks fall back to a type of smaller blocks.
std::vector<DType> choose_types(const FileType& type, bool pure,
                                const std::vector<GgufTensor>& tensors);

}  // namespace tinyvllm
