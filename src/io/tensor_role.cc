#include "io/tensor_role.h"

#include <initializer_list>

namespace tinyvllm {
namespace {

bool has_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

bool begins_with_any(std::string_view name, std::initializer_list<std::string_view> heads) {
  for (const std::string_view head : heads) {
    if (name.starts_with(head)) return true;
  }
  return false;
}

// GGUF names are one vocabulary for all architectures: "blk.3.attn_q.weight".
TensorRole gguf_role(std::string_view name) {
  if (begins_with_any(name, {"v.", "a.", "mm."})) return {.decoded = false};
  if (has_any(name, {"norm"})) return {.component = Component::kNorms};
  if (has_any(name, {"token_embd", "position_embd", "token_types"})) {
    return {.component = Component::kEmbedding, .by_row = true};
  }
  if (begins_with_any(name, {"output."})) return {.component = Component::kHead};
  if (has_any(name, {"attn", "rope_"})) return {.component = Component::kAttention};
  if (has_any(name, {"ffn_"})) {
    return {.component = Component::kFeedForward, .experts = has_any(name, {"_exps."})};
  }
  return {};
}

// Hugging Face names are each model's own; these parts cover the families in use.
TensorRole hf_role(std::string_view name) {
  if (has_any(name, {"vision", "visual", "image_", "audio", "multi_modal", "mm_projector"})) {
    return {.decoded = false};
  }
  if (has_any(name, {"norm", "ln_", "layernorm", ".ln"})) return {.component = Component::kNorms};
  if (has_any(name, {"lm_head", "embed_out"})) return {.component = Component::kHead};
  if (has_any(name, {"embed", "wte.", "wpe."})) {
    return {.component = Component::kEmbedding, .by_row = true};
  }
  if (has_any(name, {"attn", "attention"})) return {.component = Component::kAttention};
  if (has_any(name, {"mlp", "ffn", "feed_forward", "moe", "experts", ".fc1.", ".fc2."})) {
    return {.component = Component::kFeedForward,
            .experts = has_any(name, {".experts."}) && !has_any(name, {"shared"})};
  }
  return {};
}

}  // namespace

const char* component_name(Component component) {
  static const char* const kNames[kComponentCount] = {"embedding", "attention", "feed-forward",
                                                      "norms",     "head",      "other"};
  return kNames[static_cast<int>(component)];
}

TensorRole tensor_role(ModelFormat format, std::string_view name) {
  return format == ModelFormat::kGguf ? gguf_role(name) : hf_role(name);
}

}  // namespace tinyvllm
