#include "text/end_tokens.h"

#include <algorithm>

namespace tinyvllm {
namespace {

constexpr std::string_view kEndTokens[] = {
    "<|eot_id|>",             // Llama 3
    "<|eom_id|>",             // Llama 3, a tool call
    "<|end_of_text|>",        // Llama 3, Granite
    "<|eot|>",                // Llama 4, DeepSeek coder
    "<|eom|>",                // Llama 4
    "<|im_end|>",             // ChatML: Qwen, SmolLM, Yi
    "<|endoftext|>",          // GPT-2 and its many heirs
    "<|end|>",                // Phi-3
    "<|return|>",             // gpt-oss
    "<|call|>",               // gpt-oss, a tool call
    "<end_of_turn>",          // Gemma
    "<turn|>",                // Gemma 4
    "<|END_OF_TURN_TOKEN|>",  // Command R
    "<end_of_utterance>",     // SmolVLM
    "<｜end▁of▁sentence｜>",  // DeepSeek
    "<EOT>",                  // Falcon, code models
};

}  // namespace

bool spells_end(std::string_view token) {
  return std::find(std::begin(kEndTokens), std::end(kEndTokens), token) != std::end(kEndTokens);
}

std::vector<int32_t> tidy_end_ids(std::vector<int64_t> ids, size_t vocab_size) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<int32_t> tidy;
  for (const int64_t id : ids) {
    if (id >= 0 && id < static_cast<int64_t>(vocab_size)) tidy.push_back(static_cast<int32_t>(id));
  }
  return tidy;
}

}  // namespace tinyvllm
