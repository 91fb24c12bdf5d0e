// The part of a tokenizer that knows the vocabulary: turns one pre-split piece of text into ids.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tinyvllm {

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Appends the ids of one piece, which is well-formed UTF-8 and not empty. Safe from many threads.
  virtual void encode(std::string_view piece, std::vector<int32_t>& ids) const = 0;

  virtual size_t memory_bytes() const = 0;  // of its tables
};

}  // namespace tinyvllm
