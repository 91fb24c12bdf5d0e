// Reads the header of one safetensors file: an 8-byte length, that many bytes of JSON, then the
// tensors' bytes back to back. Checked as the format's own library does: shapes agree with sizes,
// and the tensors cover the data exactly, without holes or overlaps.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/weight_source.h"

namespace tinyvllm {

// Tensors in the order of their bytes, as views into `file`. Old writers did not align the data, so
// a view may be unaligned for its type.
Result<std::vector<WeightTensor>> read_safetensors(std::string_view file);

// model.safetensors.index.json: which file of the folder holds which tensor. Files are named
// plainly, never by a path that could leave the folder.
Result<std::map<std::string, std::string>> read_safetensors_index(std::string_view json);

}  // namespace tinyvllm
