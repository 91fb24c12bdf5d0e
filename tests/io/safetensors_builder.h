// Writes safetensors files and whole Hugging Face folders, right by default and wrong on request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace tinyvllm {

// The file with this JSON header, whatever it says, and `data_bytes` bytes of tensors.
inline std::string safetensors_file(std::string_view header, uint64_t data_bytes) {
  uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  file += header;
  for (uint64_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i * 5 + 1);
  return file;
}

// One entry of a header: "name":{"dtype":…}.
inline std::string safetensors_entry(std::string_view name, std::string_view dtype,
                                     std::string_view shape, uint64_t begin, uint64_t end) {
  return str_cat("\"", name, "\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
                 ",\"data_offsets\":[", begin, ",", end, "]}");
}

// Two tensors: "a" F16 [2, 3], "b" BF16 [4]. The header is padded so that the data is aligned.
inline std::string tiny_safetensors() {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                       safetensors_entry("b", "BF16", "[4]", 12, 20) + "," +
                       safetensors_entry("a", "F16", "[2,3]", 0, 12) + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return safetensors_file(header, 20);
}

}  // namespace tinyvllm
