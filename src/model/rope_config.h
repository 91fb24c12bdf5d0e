// The rotary positions that a model's files describe: base, and how they are stretched beyond the
// length of the first training.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/config_reader.h"
#include "ops/rope.h"

namespace tinyvllm {

struct RopeConfig {
  enum class Scaling { kNone, kLinear, kLlama3, kYarn, kLongrope };

  Scaling scaling = Scaling::kNone;
  double base = 10000;
  double factor = 1;
  int64_t original_length = 0;                       // before stretching
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // YaRN
  bool truncate = true;                              // YaRN: ramp between whole pairs
  std::optional<double> magnitude;                   // else by the scaling's formula
  double extra_magnitude = 1;                        // besides that
  std::vector<float> short_factors, long_factors;    // longrope, from config.json
};

// `length` is the context that the files name. A scaling that is not known, and "dynamic", whose
// angles would change as text grows, are errors.
Result<RopeConfig> read_rope_config(const ConfigReader& reader, int64_t length);

}  // namespace tinyvllm
