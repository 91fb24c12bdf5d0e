// The least time that a machine can take for some work: every byte that has to come from memory
// read at the measured speed, every product done at the measured rate, whichever takes longer.
// Utilization, everywhere, is this over the time that was taken.
#pragma once

#include "engine/llm_engine.h"
#include "io/model_summary.h"
#include "report/document.h"
#include "report/plot.h"
#include "telemetry/ledger.h"
#include "telemetry/limits.h"

namespace tinyvllm {

struct Roof {
  MachineLimits limits;
  double weights_bytes_per_s = 0;  // read again every step: memory's speed, or the last cache's
                                   // where a model fits it
  double cache_bytes_per_s = 0;    // of activations, which never leave the first caches; 0: not
                                   // measured, as a card's, and then nothing bounds them here

  // What bounds it, in words: "memory", "multiplying" or "caches"; "-" and 0 s without a limit.
  struct Bound {
    double seconds = 0;
    const char* by = "";
  };
  Bound least(const OpCall& call) const;
  Bound least(const std::vector<OpCall>& calls) const;  // one after the other
};

// Measures what `limits` does not say. Weights that the last cache could hold are read from there.
Result<Roof> make_roof(Runtime& runtime, const MachineLimits& limits, size_t weight_bytes);

// Ops as points under the roof: FLOP/s reached against FLOP for each byte.
Figure roofline(const Roof& roof, const std::vector<Series>& points);

// A model's work, in tokens.
class WorkLimit {
 public:
  WorkLimit(const Roof& roof, const ModelInfo& info, const ModelSummary& summary);

  double token_bytes() const { return weight_bytes_; }
  double prompt_flops() const { return prompt_flops_; }  // of one token
  double multiply_rate() const { return rate_; }         // of the weights' type
  double kv_bytes() const { return kv_bytes_; }          // of one token
  double max_decode_tok_s() const { return roof_.weights_bytes_per_s / weight_bytes_; }
  double max_prompt_tok_s() const { return rate_ / prompt_flops_; }

  // For so many requests together: their prompts, then a token of each at a time.
  double least_prefill_s(int requests, int prompt) const;
  double least_decode_s(int requests, int prompt, int tokens) const;
  double max_tok_s(int requests, int prompt, int tokens) const;

 private:
  const Roof roof_;
  double weight_bytes_ = 0, kv_bytes_ = 0, prompt_flops_ = 0, head_flops_ = 0, rate_ = 0;
};

// The type that most of a model's bytes are of: "Q4_1".
std::string main_dtype(const ModelSummary& summary);
bool is_quantized_name(const std::string& dtype);

}  // namespace tinyvllm
