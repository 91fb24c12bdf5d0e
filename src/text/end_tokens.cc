#include "text/end_tokens.h"

#include <algorithm>

namespace tinyvllm {
namespace {

constexpr std::string_view kEndTokens[] = {
    "<|eot_id|>",             // Llama 3
    "<|eom_id|>",             // Llama 3, a tool call
    "<|end_of_text|>",        // Llama 3, Granite
    "<|eot|>",                // Llama 4
    "<|eom|>",                // Llama 4
    "<|im_end|>",             // ChatML: Qwen, SmolLM, Yi
    "<|endoftext|>",          // GPT-2 and its many heirs
    "<|return|>",             // gpt-oss
    "<|call|>",               // gpt-oss, a tool call
    "<|flush|>",              // Solar
    "<|calls|>",              // Solar, tool calls
    "<end_of_turn>",          // Gemma
    "<turn|>",                // Gemma 4
    "<eos>",                  // Gemma
    "<|END_OF_TURN_TOKEN|>",  // Command R
    "<end_of_utterance>",     // SmolVLM
    "<｜end▁of▁sentence｜>",  // DeepSeek
    "<|EOT|>",                // DeepSeek coder
    "<EOT>",                  // Falcon, code models
    "[EOT]",                  // Kimi
    "[EOS]",                  // Kimi
    "[e~[",                   // MiniMax
};

// The end of an answer in Phi-3; where there are <|return|> or <|flush|> as well, of one message
// among several.
constexpr std::string_view kMessageEnd = "<|end|>";

}  // namespace

void EndTokens::add_if_spelled(std::string_view token, int64_t id) {
  if (token == kMessageEnd) messages_.push_back(id);
  if (token == "<|return|>" || token == "<|flush|>") has_return_ = true;
  const auto found = std::find(std::begin(kEndTokens), std::end(kEndTokens), token);
  if (found != std::end(kEndTokens)) ids_.push_back(id);
}

std::vector<int32_t> EndTokens::tidy(size_t vocab_size) const {
  std::vector<int64_t> ids = ids_;
  if (!has_return_) ids.insert(ids.end(), messages_.begin(), messages_.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<int32_t> tidy;
  for (const int64_t id : ids) {
    if (id >= 0 && id < static_cast<int64_t>(vocab_size)) tidy.push_back(static_cast<int32_t>(id));
  }
  return tidy;
}

}  // namespace tinyvllm
