// One value of a model's configuration under either format's name, checked. The keys that every
// decoder has are read by read_decoder_config; what only one architecture has, it reads itself.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "io/model_files.h"
#include "model/listing.h"

namespace tinyvllm {

class ConfigReader {
 public:
  struct Field {
    const char* gguf;  // after the architecture's prefix
    const char* hf;
  };

  // With a listing, what is read is written there too.
  explicit ConfigReader(const ModelFiles& files, ModelListing* listing = nullptr);

  bool is_gguf() const { return files_.format() == ModelFormat::kGguf; }
  const Metadata& metadata() const { return files_.metadata(); }
  std::string key(const Field& field) const;
  bool has(const Field& field) const { return metadata().has(key(field)); }

  // A size from 1 up; an absent key gives the fallback, where there is one.
  Result<int64_t> size(const Field& field, int64_t fallback = 0) const;
  Result<double> positive(const Field& field, double fallback) const;
  Result<bool> flag(const Field& field, bool fallback) const;
  // Tokens of a sliding window; 0 when the files know of none.
  Result<int64_t> window() const;
  // For what we would otherwise ignore: an error unless the key is absent, null, false, 0 or empty.
  Status refuse(const Field& field, const char* why) const;

 private:
  template <class T>
  T noted(const Field& field, T value) const;

  const ModelFiles& files_;
  ModelListing* const listing_;
  std::string prefix_;
};

}  // namespace tinyvllm
