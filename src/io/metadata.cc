#include "io/metadata.h"

#include <cmath>
#include <limits>

namespace tinyvllm {
namespace {

Error missing(std::string_view key, const char* expected) {
  return error("key '", printable(key), "' is missing; expected ", expected);
}

Error wrong_kind(std::string_view key, const MetadataValue& found, const char* expected) {
  return error("key '", printable(key), "' is ", metadata_kind(found), "; expected ", expected);
}

// Lists of a configuration have an element for each layer or dimension. Longer arrays belong to the
// vocabulary, which does not come this way.
constexpr uint64_t kMaxListElements = 1 << 20;

Status check_length(std::string_view key, const PackedArray& list) {
  if (list.count <= kMaxListElements) return Status();
  return error("key '", printable(key), "' has ", list.count, " elements; expected at most ",
               kMaxListElements);
}

constexpr uint64_t kMaxInt64 = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

// Integers are asked for as int64_t; what does not fit is an error, not a negative number.
Result<int64_t> to_int64(std::string_view key, uint64_t value) {
  if (value > kMaxInt64) {
    return error("key '", printable(key), "' is ", value, "; expected at most ", kMaxInt64);
  }
  return static_cast<int64_t>(value);
}

Result<double> to_finite(std::string_view key, double value) {
  if (!std::isfinite(value)) {
    return error("key '", printable(key), "' is ", value, "; expected a finite number");
  }
  return value;
}

}  // namespace

const char* gguf_type_name(GgufType type) {
  static const char* const kNames[kGgufTypeCount] = {
      "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
      "bool",  "string", "array",  "uint64", "int64",  "float64"};
  return kNames[static_cast<uint32_t>(type)];
}

uint64_t gguf_type_bytes(GgufType type) {
  static const uint64_t kBytes[kGgufTypeCount] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<uint32_t>(type)];
}

const char* metadata_kind(const MetadataValue& value) {
  if (const auto* packed = std::get_if<PackedArray>(&value)) {
    if (packed->type == GgufType::kBool) return "an array of flags";
    return packed->is_integer() ? "an array of integers" : "an array of numbers";
  }
  static const char* const kKinds[] = {"a flag",
                                       "an integer",
                                       "an integer",
                                       "a number",
                                       "a string",
                                       "",
                                       "an array of flags",
                                       "an array of integers",
                                       "an array of numbers",
                                       "an array of strings"};
  static_assert(std::size(kKinds) == std::variant_size_v<MetadataValue>);
  return kKinds[value.index()];
}

bool Metadata::insert(std::string_view key, MetadataValue value) {
  return values_.try_emplace(std::string(key), std::move(value)).second;
}

std::optional<MetadataValue> Metadata::take(std::string_view key) {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  std::optional<MetadataValue> value(std::move(found->second));
  values_.erase(found);
  return value;
}

std::string_view Metadata::own(std::string text) { return owned_.emplace_back(std::move(text)); }

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Result<int64_t> Metadata::integer(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key, "an integer");
  if (const auto* number = std::get_if<int64_t>(value)) return *number;
  if (const auto* number = std::get_if<uint64_t>(value)) return to_int64(key, *number);
  return wrong_kind(key, *value, "an integer");
}

Result<double> Metadata::number(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key, "a number");
  if (const auto* number = std::get_if<double>(value)) return to_finite(key, *number);
  if (const auto* number = std::get_if<int64_t>(value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<uint64_t>(value)) return static_cast<double>(*number);
  return wrong_kind(key, *value, "a number");
}

Result<std::string_view> Metadata::string(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key, "a string");
  if (const auto* text = std::get_if<std::string_view>(value)) return *text;
  return wrong_kind(key, *value, "a string");
}

Result<bool> Metadata::boolean(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key, "a flag");
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  return wrong_kind(key, *value, "a flag");
}

Result<std::vector<int64_t>> Metadata::integers(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key, "an array of integers");
  if (const auto* list = std::get_if<std::vector<int64_t>>(value)) return *list;
  const auto* packed = std::get_if<PackedArray>(value);
  if (packed == nullptr || !packed->is_integer()) {
    return wrong_kind(key, *value, "an array of integers");
  }
  TRY(check_length(key, *packed));
  std::vector<int64_t> list;
  list.reserve(packed->count);
  bool fits = true;
  packed->for_each([&](auto element) {
    if constexpr (std::is_same_v<decltype(element), uint64_t>) fits &= element <= kMaxInt64;
    list.push_back(static_cast<int64_t>(element));
  });
  if (!fits) return error("key '", printable(key), "': an element is over ", kMaxInt64);
  return list;
}

Result<std::vector<double>> Metadata::numbers(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key, "an array of numbers");
  std::vector<double> list;
  if (const auto* numbers = std::get_if<std::vector<double>>(value)) {
    list = *numbers;
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(value)) {
    list.assign(integers->begin(), integers->end());
  } else if (const auto* packed = std::get_if<PackedArray>(value);
             packed != nullptr && packed->type != GgufType::kBool) {
    TRY(check_length(key, *packed));
    list.reserve(packed->count);
    packed->for_each([&](auto element) { list.push_back(static_cast<double>(element)); });
  } else {
    return wrong_kind(key, *value, "an array of numbers");
  }
  for (const double element : list) TRY(to_finite(key, element));
  return list;
}

Result<std::vector<bool>> Metadata::booleans(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key, "an array of flags");
  if (const auto* list = std::get_if<std::vector<bool>>(value)) return *list;
  const auto* packed = std::get_if<PackedArray>(value);
  if (packed == nullptr || packed->type != GgufType::kBool) {
    return wrong_kind(key, *value, "an array of flags");
  }
  std::vector<bool> list;
  list.reserve(packed->count);
  packed->for_each([&](auto element) { list.push_back(element != 0); });
  return list;
}

Result<std::vector<std::string_view>> Metadata::strings(std::string_view key) const {
  const MetadataValue* value = find(key);
  if (value == nullptr) return missing(key, "an array of strings");
  if (const auto* list = std::get_if<std::vector<std::string_view>>(value)) return *list;
  // An empty JSON list has no kind of its own.
  if (const auto* list = std::get_if<std::vector<int64_t>>(value);
      list != nullptr && list->empty()) {
    return std::vector<std::string_view>();
  }
  return wrong_kind(key, *value, "an array of strings");
}

Result<int64_t> Metadata::integer_or(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

Result<double> Metadata::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

Result<std::string_view> Metadata::string_or(std::string_view key,
                                             std::string_view fallback) const {
  return has(key) ? string(key) : fallback;
}

Result<bool> Metadata::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

}  // namespace tinyvllm
