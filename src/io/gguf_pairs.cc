#include "io/gguf_pairs.h"

#include <algorithm>

namespace tinyvllm {
namespace {

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& bytes, std::string_view text) {
  append<uint64_t>(bytes, text.size());
  bytes.append(text);
}

std::string key_and_type(std::string_view key, GgufType type) {
  std::string bytes;
  append_text(bytes, key);
  append(bytes, type);
  return bytes;
}

template <class T>
std::string scalar_pair(std::string_view key, GgufType type, T value) {
  std::string bytes = key_and_type(key, type);
  append(bytes, value);
  return bytes;
}

std::string array_head(std::string_view key, GgufType type, size_t count) {
  std::string bytes = key_and_type(key, GgufType::kArray);
  append(bytes, type);
  append<uint64_t>(bytes, count);
  return bytes;
}

template <class T>
std::string array_pair(std::string_view key, GgufType type, std::span<const T> values) {
  std::string bytes = array_head(key, type, values.size());
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return bytes;
}

}  // namespace

void GgufPairs::u32(std::string_view key, uint32_t value) {
  set(key, scalar_pair(key, GgufType::kU32, value));
}
void GgufPairs::f32(std::string_view key, float value) {
  set(key, scalar_pair(key, GgufType::kF32, value));
}
void GgufPairs::flag(std::string_view key, bool value) {
  set(key, scalar_pair(key, GgufType::kBool, static_cast<uint8_t>(value)));
}

void GgufPairs::text(std::string_view key, std::string_view value) {
  std::string bytes = key_and_type(key, GgufType::kString);
  append_text(bytes, value);
  set(key, std::move(bytes));
}

void GgufPairs::texts(std::string_view key, std::span<const std::string> values) {
  std::string bytes = array_head(key, GgufType::kString, values.size());
  for (const std::string& value : values) append_text(bytes, value);
  set(key, std::move(bytes));
}

void GgufPairs::i32s(std::string_view key, std::span<const int32_t> values) {
  set(key, array_pair(key, GgufType::kI32, values));
}
void GgufPairs::f32s(std::string_view key, std::span<const float> values) {
  set(key, array_pair(key, GgufType::kF32, values));
}

void GgufPairs::flags(std::string_view key, const std::vector<bool>& values) {
  std::string bytes = array_head(key, GgufType::kBool, values.size());
  for (const bool value : values) append(bytes, static_cast<uint8_t>(value));
  set(key, std::move(bytes));
}

void GgufPairs::copy(const GgufPair& pair) { set(pair.key, std::string(pair.bytes)); }

void GgufPairs::set(std::string_view key, std::string bytes) {
  const auto found =
      std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& p) { return p.key == key; });
  if (found != pairs_.end()) {
    found->bytes = std::move(bytes);
  } else {
    pairs_.push_back({std::string(key), std::move(bytes)});
  }
}

void GgufPairs::remove(std::string_view key) {
  std::erase_if(pairs_, [&](const Pair& pair) { return pair.key == key; });
}

bool GgufPairs::has(std::string_view key) const {
  return std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& p) { return p.key == key; });
}

void GgufPairs::append_to(std::string& bytes) const {
  for (const Pair& pair : pairs_) bytes += pair.bytes;
}

}  // namespace tinyvllm
