// What an architecture asks of a model's files, written down instead of used: the configuration it
// reads and the weights it would bind, under GGUF's names. Converting files and making up weights
// learn from the architecture itself what a model consists of.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/tensor.h"

namespace tinyvllm {

struct ModelListing {
  // A value of the configuration: "attention.head_count", after the architecture's prefix.
  struct Fact {
    std::string key;
    std::variant<int64_t, double, bool> value;
  };

  enum class Kind { kMatrix, kBias, kNorm, kTable };
  struct Weight {
    std::string name;                  // "blk.0.attn_q.weight"
    std::vector<std::string> sources;  // the files' own: one, or one for each expert
    Shape shape;                       // as GGUF has it, experts stacked: [experts, out, in]
    Kind kind = Kind::kMatrix;
    float offset = 0;  // to be added to every number of these files
  };

  std::vector<Fact> facts;
  std::vector<Weight> weights;  // each name once, in the order of asking
};

}  // namespace tinyvllm
