#include "model/convert/hf_vocabulary.h"

#include "text/chat_format.h"
#include "text/gguf_export.h"

namespace tinyvllm {
namespace {

void add_id(const char* key, const std::optional<int64_t>& id, GgufPairs& pairs) {
  if (id) pairs.u32(key, static_cast<uint32_t>(*id));
}

}  // namespace

Status add_hf_vocabulary(const TokenizerData& data, int64_t vocab_size, GgufPairs& pairs) {
  if (data.tokenizer_json.empty() && data.sentencepiece_model.empty()) {
    pairs.text("tokenizer.ggml.model", "none");  // a model without text, which readers know
    return Status();
  }
  TRY_ASSIGN(const ExportedVocabulary v, export_vocabulary(data, vocab_size));
  pairs.text("tokenizer.ggml.model", v.model);
  pairs.text("tokenizer.ggml.pre", v.pre);
  pairs.texts("tokenizer.ggml.tokens", v.tokens);
  pairs.i32s("tokenizer.ggml.token_type", v.types);
  if (!v.scores.empty()) pairs.f32s("tokenizer.ggml.scores", v.scores);
  if (v.model == "gpt2") pairs.texts("tokenizer.ggml.merges", v.merges);
  add_id("tokenizer.ggml.bos_token_id", v.bos, pairs);
  add_id("tokenizer.ggml.eos_token_id", v.eos, pairs);
  add_id("tokenizer.ggml.unknown_token_id", v.unknown, pairs);
  pairs.flag("tokenizer.ggml.add_bos_token", v.add_bos);
  pairs.flag("tokenizer.ggml.add_eos_token", v.add_eos);
  if (v.add_space_prefix) pairs.flag("tokenizer.ggml.add_space_prefix", *v.add_space_prefix);
  if (const auto format = read_chat_format(data); format.ok() && !format.value().source.empty()) {
    pairs.text("tokenizer.chat_template", format.value().source);
    const std::string& with_tools = format.value().source_with_tools;
    if (!with_tools.empty()) pairs.text("tokenizer.chat_template.tool_use", with_tools);
  }
  return Status();
}

}  // namespace tinyvllm
