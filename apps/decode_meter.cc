#include "apps/decode_meter.h"

#include <algorithm>

#include "ops/attention.h"

namespace tinyvllm {

double kv_bytes_read(const std::vector<KvSpec>& groups, int64_t tokens) {
  constexpr int kBlock = 16;  // a block holds nothing but its tokens, so any size gives the same
  double bytes = 0;
  for (const KvSpec& spec : groups) {
    const int64_t seen = spec.window > 0 ? std::min<int64_t>(tokens, spec.window) : tokens;
    bytes +=
        static_cast<double>(ops::kv_block_bytes(spec, kBlock)) / kBlock * static_cast<double>(seen);
  }
  return bytes;
}

void DecodeMeter::after_step(std::span<const RequestOutput> outputs) {
  if (!clock_) {
    for (const RequestOutput& output : outputs) begun_.emplace(output.request, output.answer);
    if (static_cast<int>(begun_.size()) == answers_) clock_.emplace();
    return;
  }
  if (outputs.empty()) return;
  seconds_ = clock_->seconds();
  bytes_ += static_cast<double>(info_.weight_bytes);
  for (const RequestOutput& output : outputs) {
    tokens_ += static_cast<double>(output.tokens.size());
    bytes_ += kv_bytes_read(info_.kv_groups, output.prompt_tokens + output.completion_tokens - 1);
  }
}

}  // namespace tinyvllm
