// JSON as this folder reads it: values that know their place in the document, so that every error
// names it. simdjson does the parsing and stays behind this header.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tinyvllm {

// A value inside a JsonDocument, which must outlive it.
class Json {
 public:
  enum class Kind { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Kind kind() const;
  const std::string& path() const { return path_; }  // "tokenizer.json: model.vocab"

  // A field of an object. `find` takes null for absence; `field` has an error for both.
  std::optional<Json> find(std::string_view key) const;
  Result<Json> field(std::string_view key) const;
  Result<std::vector<Json>> items() const;  // of an array

  Result<std::string_view> string() const;
  Result<int64_t> integer() const;
  Result<double> number() const;
  Result<bool> boolean() const;

  // Fields of an object that is this value, with a fallback for absence (but not for another type).
  Result<std::string_view> string_field(std::string_view key) const;
  Result<bool> boolean_field(std::string_view key) const;
  Result<bool> boolean_field_or(std::string_view key, bool fallback) const;

  // All fields of an object, all items of an array: for the large ones, without making a path for
  // each. The callback may return an error, which ends the walk.
  Result<size_t> size() const;
  Status for_each_field(
      const std::function<Status(std::string_view key, const Json&)>& visit) const;
  Status for_each_item(const std::function<Status(size_t index, const Json&)>& visit) const;

  // "tokenizer.json: model.vocab: expected …, found …"
  Error wrong(std::string_view expected) const;

 private:
  friend class JsonDocument;
  using Handle = std::array<uint64_t, 2>;  // a simdjson element, which is two words
  Json(Handle element, std::string path) : element_(element), path_(std::move(path)) {}

  Handle element_;
  std::string path_;
};

class JsonDocument {
 public:
  // `name`: what errors call the document, as a rule the name of the file.
  static Result<JsonDocument> parse(std::string_view text, std::string name);
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) = delete;

  Json root() const;

 private:
  struct Parsed;
  JsonDocument(std::unique_ptr<Parsed> parsed, std::string name);

  std::unique_ptr<Parsed> parsed_;
  std::string name_;
};

}  // namespace tinyvllm
