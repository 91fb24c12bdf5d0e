#include "text/protobuf.h"

#include <bit>

namespace tinyvllm {
namespace {

Error wrong_type(std::string_view what) { return error(what, ": of another type than expected"); }

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

}  // namespace

Result<std::string_view> ProtobufField::as_bytes(std::string_view what) const {
  if (type != Type::kBytes) return wrong_type(what);
  return bytes;
}

Result<int64_t> ProtobufField::as_integer(std::string_view what) const {
  if (type != Type::kVarint) return wrong_type(what);
  return static_cast<int64_t>(value);
}

Result<bool> ProtobufField::as_boolean(std::string_view what) const {
  if (type != Type::kVarint) return wrong_type(what);
  return value != 0;
}

Result<float> ProtobufField::as_float(std::string_view what) const {
  if (type != Type::kFixed32) return wrong_type(what);
  return std::bit_cast<float>(static_cast<uint32_t>(value));
}

Result<std::optional<ProtobufField>> ProtobufReader::next() {
  if (rest_.empty()) return std::optional<ProtobufField>();
  TRY_ASSIGN(const uint64_t tag, varint());
  ProtobufField field;
  field.number = static_cast<uint32_t>(tag >> 3);
  if (field.number == 0 || tag >> 3 > UINT32_MAX) return error("a field without a number");
  switch (tag & 7) {
    case 0: {
      field.type = ProtobufField::Type::kVarint;
      TRY_ASSIGN(field.value, varint());
      break;
    }
    case 1: {
      field.type = ProtobufField::Type::kFixed64;
      TRY_ASSIGN(const std::string_view bytes, take(8));
      field.value = little_endian(bytes);
      break;
    }
    case 2: {
      field.type = ProtobufField::Type::kBytes;
      TRY_ASSIGN(const uint64_t length, varint());
      TRY_ASSIGN(field.bytes, take(length));
      break;
    }
    case 5: {
      field.type = ProtobufField::Type::kFixed32;
      TRY_ASSIGN(const std::string_view bytes, take(4));
      field.value = little_endian(bytes);
      break;
    }
    default:
      return error("field ", field.number, " has wire type ", tag & 7, ", which is not supported");
  }
  return std::optional<ProtobufField>(field);
}

Result<uint64_t> ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return error("cut short inside a number");
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return error("a number of more than 64 bits");
}

Result<std::string_view> ProtobufReader::take(uint64_t count) {
  if (count > rest_.size()) {
    return error("a field of ", count, " bytes with only ", rest_.size(), " left");
  }
  const std::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return bytes;
}

}  // namespace tinyvllm
