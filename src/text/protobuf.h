// The wire format of protocol buffers, read field by field. Nothing is trusted: a length that goes
// past the end, a number that does not end, or a group is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace tinyvllm {

struct ProtobufField {
  enum class Type { kVarint, kFixed64, kBytes, kFixed32 };

  uint32_t number = 0;
  Type type = Type::kVarint;
  uint64_t value = 0;      // of numbers
  std::string_view bytes;  // of strings and messages

  // The field's value, or an error that names `what` when the field is of another type.
  Result<std::string_view> as_bytes(std::string_view what) const;
  Result<int64_t> as_integer(std::string_view what) const;
  Result<bool> as_boolean(std::string_view what) const;
  Result<float> as_float(std::string_view what) const;
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  // The next field; nothing at the end of the message.
  Result<std::optional<ProtobufField>> next();

 private:
  Result<uint64_t> varint();
  Result<std::string_view> take(uint64_t count);

  std::string_view rest_;
};

}  // namespace tinyvllm
