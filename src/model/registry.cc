#include "model/registry.h"

#include <unordered_set>

#include "model/arch/arch.h"

namespace tinyvllm {
namespace {

constexpr Architecture kArchitectures[] = {
    {"gemma3", "Gemma3ForCausalLM", load_gemma3},
    {"llama", "LlamaForCausalLM", load_llama},
    {"llama", "MistralForCausalLM", load_llama},
    {"olmo2", "Olmo2ForCausalLM", load_olmo2},
    {"phi3", "Phi3ForCausalLM", load_phi3},
    {"qwen2", "Qwen2ForCausalLM", load_qwen2},
    {"qwen3", "Qwen3ForCausalLM", load_qwen3},
    {"qwen3moe", "Qwen3MoeForCausalLM", load_qwen3moe},
};

// config.json lists class names; the first one is the model's.
Result<std::string_view> architecture_name(const ModelFiles& files) {
  if (files.format() == ModelFormat::kGguf) return files.metadata().string("general.architecture");
  const MetadataValue* value = files.metadata().find("architectures");
  const auto* names =
      value == nullptr ? nullptr : std::get_if<std::vector<std::string_view>>(value);
  if (names == nullptr || names->empty()) {
    return error("config.json: expected 'architectures' to be a list of names");
  }
  return names->front();
}

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

Result<const Architecture*> find_architecture(const ModelFiles& files) {
  TRY_ASSIGN(const std::string_view name, architecture_name(files));
  std::string known;
  std::string_view last;
  for (const Architecture& architecture : kArchitectures) {
    const char* own =
        files.format() == ModelFormat::kGguf ? architecture.gguf_name : architecture.hf_name;
    if (name == own) return &architecture;
    if (own == last) continue;  // one GGUF name may serve several of Hugging Face's
    known += str_cat(known.empty() ? "" : ", ", own);
    last = own;
  }
  return error("architecture '", printable(name), "' cannot be run; known are: ", known);
}

Result<std::unique_ptr<Model>> load_model(const ModelFiles& files, Device& device, ThreadPool& pool,
                                          const ModelOptions& options) {
  TRY_ASSIGN(const Architecture* architecture, find_architecture(files));
  auto model = architecture->load(files, device, pool, options);
  if (!model.ok()) return error(files.path(), ": ", model.message());
  return model;
}

std::vector<TensorView> weights_in_order(const ModelFiles& files, Device& device,
                                         ThreadPool& pool) {
  ModelListing listing;
  ModelOptions options;
  options.listing = &listing;
  (void)load_model(files, device, pool, options);  // whoever loads it hears what is wrong with it
  std::vector<TensorView> views;
  std::unordered_set<const void*> listed;
  for (const ModelListing::Weight& weight : listing.weights) {
    for (const std::string& source : weight.sources) {
      const WeightTensor* const tensor = files.weights().find(source);
      if (tensor == nullptr || !listed.insert(tensor->view.data).second) continue;
      views.push_back(tensor->view);
    }
  }
  for (const WeightTensor& tensor : files.weights().tensors()) {
    if (!listed.contains(tensor.view.data)) views.push_back(tensor.view);
  }
  return views;
}

}  // namespace tinyvllm
