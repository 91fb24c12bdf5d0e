// Every sampling field as a flag, and what holds where no flag was given: the model's own
// recommendation, and greedy decoding where it has none.
#pragma once

#include <vector>

#include "core/sampling_fields.h"

namespace CLI {
class App;
}

namespace tinyvllm {

class LLMEngine;

struct SamplingFlags {
  SamplingParams values;                    // of the fields that were given; otherwise defaults
  std::vector<const SamplingField*> given;  // each once

  bool has(const char* name) const;
};

// --temperature, --top-k, …; -n is short for --max-tokens.
void add_sampling_flags(CLI::App& command, SamplingFlags& flags);

// Where neither flags nor the model say anything: `temperature`, unless a flag asks for sampling.
Result<SamplingParams> sampling_params(const LLMEngine& engine, const SamplingFlags& flags,
                                       double temperature);

}  // namespace tinyvllm
