// How fast decoding went, and how many bytes it had to read for that: the weights once a step, and
// of the KV cache what each token saw. Counts from when every answer has its first token, so that
// prompts are no part of it.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/stopwatch.h"
#include "engine/llm_engine.h"

namespace tinyvllm {

class DecodeMeter {
 public:
  DecodeMeter(const Model& model, int answers) : info_(model.info()), answers_(answers) {}

  void after_step(std::span<const RequestOutput> outputs);

  double tokens_per_s() const { return seconds_ > 0 ? tokens_ / seconds_ : 0; }
  double bytes_per_s() const { return seconds_ > 0 ? bytes_ / seconds_ : 0; }

 private:
  const ModelInfo& info_;
  const int answers_;
  std::set<std::pair<RequestId, uint32_t>> begun_;
  std::optional<Stopwatch> clock_;
  double seconds_ = 0;
  double tokens_ = 0;
  double bytes_ = 0;
};

// Bytes of KV cache that a token reads which sees so many tokens, itself among them.
double kv_bytes_read(const std::vector<KvSpec>& groups, int64_t tokens);

}  // namespace tinyvllm
