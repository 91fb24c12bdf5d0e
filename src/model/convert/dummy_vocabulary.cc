#include "model/convert/dummy_vocabulary.h"

#include <string>
#include <string_view>
#include <vector>

#include "core/tokenizer_data.h"
#include "text/byte_alphabet.h"

namespace tinyvllm {
namespace {

constexpr const char* kControl[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
constexpr uint32_t kEndOfText = 0, kEndOfTurn = 2;
constexpr int64_t kFewest = 256 + std::size(kControl);

constexpr char kChatTemplate[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";

// Letters by their frequency in English; a space may only begin a token.
constexpr std::string_view kLetters = " etaoinshrdlcumwfgypbvkxjqzETAOINSHRDLCUMWFGYPBVKXJQZ";

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;

  // Joins of two of `parts`, those of low indices first, until there are `count` tokens.
  std::vector<std::string> join(const std::vector<std::string>& parts, const std::string& space,
                                int64_t count) {
    std::vector<std::string> made;
    for (size_t sum = 0; sum + 1 < 2 * parts.size(); ++sum) {
      for (size_t left = sum < parts.size() ? 0 : sum - parts.size() + 1;
           left <= sum && left < parts.size(); ++left) {
        const std::string& right = parts[sum - left];
        if (right.starts_with(space)) continue;
        if (static_cast<int64_t>(tokens.size()) == count) return made;
        made.push_back(parts[left] + right);
        tokens.push_back(made.back());
        merges.push_back(parts[left] + " " + right);
      }
    }
    return made;
  }
};

}  // namespace

Status add_dummy_vocabulary(int64_t count, GgufPairs& pairs) {
  if (count < kFewest) {
    return error("vocab_size: a made-up vocabulary has at least ", kFewest,
                 " tokens, one for each byte and ", std::size(kControl), " more; found ", count);
  }
  Vocabulary v;
  for (const char* control : kControl) v.tokens.emplace_back(control);
  for (int byte = 0; byte < 256; ++byte) {
    v.tokens.push_back(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
  }
  std::vector<std::string> parts;
  for (const char letter : kLetters) parts.push_back(to_byte_alphabet(std::string(1, letter)));
  const std::string space = parts[0];
  while (static_cast<int64_t>(v.tokens.size()) < count) parts = v.join(parts, space, count);

  std::vector<int32_t> types(v.tokens.size(), GgufVocabulary::kNormal);
  for (size_t i = 0; i < std::size(kControl); ++i) types[i] = GgufVocabulary::kControl;
  pairs.text("tokenizer.ggml.model", "gpt2");
  pairs.text("tokenizer.ggml.pre", "gpt-2");
  pairs.texts("tokenizer.ggml.tokens", v.tokens);
  pairs.i32s("tokenizer.ggml.token_type", types);
  pairs.texts("tokenizer.ggml.merges", v.merges);
  pairs.u32("tokenizer.ggml.bos_token_id", kEndOfText);
  pairs.u32("tokenizer.ggml.eos_token_id", kEndOfTurn);
  pairs.flag("tokenizer.ggml.add_bos_token", false);
  pairs.text("tokenizer.chat_template", kChatTemplate);
  return Status();
}

}  // namespace tinyvllm
