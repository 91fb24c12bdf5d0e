// A cursor over the bytes of a file that cannot leave them. A read that does not fit leaves the
// cursor where it was and answers false; the caller says what was being read.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tinyvllm {

static_assert(std::endian::native == std::endian::little, "files are read in the machine's order");

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t offset() const { return at_; }
  uint64_t remaining() const { return bytes_.size() - at_; }

  template <class T>
  bool read(T* value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

  bool read_bytes(uint64_t count, std::string_view* view) {
    if (remaining() < count) return false;
    *view = bytes_.substr(at_, count);
    at_ += count;
    return true;
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace tinyvllm
