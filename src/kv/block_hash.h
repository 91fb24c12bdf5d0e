// Names the content of a cached block: SHA-256 over the name of the block before it, the block's
// own tokens, and whatever else changes K and V. Two blocks with one name hold the same cache, and
// nobody can make a prompt whose blocks carry another prompt's names.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tinyvllm {

struct BlockHash {
  std::array<uint8_t, 32> bytes{};
  bool operator==(const BlockHash&) const = default;
};

// For hash tables: any eight bytes of a SHA-256 are as good as the rest.
struct BlockHashHasher {
  size_t operator()(const BlockHash& hash) const {
    size_t value;
    std::memcpy(&value, hash.bytes.data(), sizeof value);
    return value;
  }
};

// The name that stands before a sequence's first block: `salt` keeps tenants and adapters apart.
BlockHash root_hash(std::string_view salt);
BlockHash next_hash(const BlockHash& before, std::span<const int32_t> tokens);

}  // namespace tinyvllm
