#include "model/config_reader.h"

namespace tinyvllm {
namespace {

// Larger than any model and small enough that products of two stay far from overflow.
constexpr int64_t kMaxSize = int64_t{1} << 30;

}  // namespace

ConfigReader::ConfigReader(const ModelFiles& files, ModelListing* listing)
    : files_(files), listing_(listing) {
  if (files.format() != ModelFormat::kGguf) return;
  if (const auto name = files.metadata().string("general.architecture"); name.ok()) {
    prefix_ = std::string(name.value()) + ".";
  }
}

template <class T>
T ConfigReader::noted(const Field& field, T value) const {
  if (listing_ != nullptr && *field.gguf != '\0') listing_->facts.push_back({field.gguf, value});
  return value;
}

std::string ConfigReader::key(const Field& field) const {
  return is_gguf() ? prefix_ + field.gguf : field.hf;
}

Result<int64_t> ConfigReader::size(const Field& field, int64_t fallback) const {
  const std::string name = key(field);
  if (fallback != 0 && !metadata().has(name)) return noted(field, fallback);
  TRY_ASSIGN(const int64_t value, metadata().integer(name));
  if (value < 1 || value > kMaxSize) {
    return error(name, ": expected 1 to ", kMaxSize, ", found ", value);
  }
  return noted(field, value);
}

Result<double> ConfigReader::positive(const Field& field, double fallback) const {
  const std::string name = key(field);
  TRY_ASSIGN(const double value, metadata().number_or(name, fallback));
  if (!(value > 0)) return error(name, ": expected a positive number, found ", value);
  return noted(field, value);
}

Result<bool> ConfigReader::flag(const Field& field, bool fallback) const {
  TRY_ASSIGN(const bool value, metadata().boolean_or(key(field), fallback));
  return noted(field, value);
}

Result<int64_t> ConfigReader::window() const {
  const Field field{"attention.sliding_window", "sliding_window"};
  const std::string name = key(field);
  TRY_ASSIGN(const int64_t value, metadata().integer_or(name, 0));
  if (value < 0 || value > kMaxSize) {
    return error(name, ": expected 0 to ", kMaxSize, ", found ", value);
  }
  return noted(field, value);
}

Status ConfigReader::refuse(const Field& field, const char* why) const {
  const MetadataValue* value = metadata().find(key(field));
  if (value == nullptr) return Status();
  const auto* flag = std::get_if<bool>(value);
  const auto* number = std::get_if<double>(value);
  const auto* list = std::get_if<std::vector<int64_t>>(value);
  const auto* integer = std::get_if<int64_t>(value);
  const bool off = (flag != nullptr && !*flag) || (number != nullptr && *number == 0) ||
                   (integer != nullptr && *integer == 0) || (list != nullptr && list->empty());
  if (off) return Status();
  return error(key(field), ": ", why);
}

}  // namespace tinyvllm
