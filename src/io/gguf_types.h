// The value types of GGUF metadata, by the numbers that files store, and arrays of them as they lie
// in the file: decoding waits until somebody asks, so opening a file copies no array.
#pragma once

#include <cstdint>
#include <cstring>

namespace tinyvllm {

enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
constexpr uint32_t kGgufTypeCount = 13;

const char* gguf_type_name(GgufType type);
uint64_t gguf_type_bytes(GgufType type);  // 0 for strings and arrays, whose size varies

// `count` elements of a fixed-width type, little-endian and unaligned.
struct PackedArray {
  GgufType type = GgufType::kU8;
  uint64_t count = 0;
  const char* data = nullptr;

  uint64_t bytes() const { return count * gguf_type_bytes(type); }
  bool is_integer() const {
    return type != GgufType::kF32 && type != GgufType::kF64 && type != GgufType::kBool;
  }
  template <class T>
  T at(uint64_t i) const {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
  }

  // Calls `use` with every element in its own C++ type (a bool as uint8_t).
  template <class Use>
  void for_each(Use use) const {
    switch (type) {
      case GgufType::kBool:
      case GgufType::kU8:
        return each<uint8_t>(use);
      case GgufType::kI8:
        return each<int8_t>(use);
      case GgufType::kU16:
        return each<uint16_t>(use);
      case GgufType::kI16:
        return each<int16_t>(use);
      case GgufType::kU32:
        return each<uint32_t>(use);
      case GgufType::kI32:
        return each<int32_t>(use);
      case GgufType::kU64:
        return each<uint64_t>(use);
      case GgufType::kI64:
        return each<int64_t>(use);
      case GgufType::kF32:
        return each<float>(use);
      case GgufType::kF64:
        return each<double>(use);
      case GgufType::kString:
      case GgufType::kArray:
        return;
    }
  }

 private:
  template <class T, class Use>
  void each(Use& use) const {
    for (uint64_t i = 0; i < count; ++i) use(at<T>(i));
  }
};

}  // namespace tinyvllm
