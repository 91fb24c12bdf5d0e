// Files that are not the model they claim to be are refused, and the error names the tensor or key.
// Each test takes a tiny model that loads and changes one thing.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "tests/io/gguf_builder.h"
#include "tests/io/temp_folder.h"
#include "tests/model/harness.h"

namespace tinyvllm {
namespace {

using testing::HasSubstr;

std::string read_bytes(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

// Replaces what must be there, once.
void replace(std::string& bytes, const std::string& from, const std::string& to) {
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  bytes.replace(at, from.size(), to);
}

// The number of a uint32 pair lies right behind its key and type.
void set_u32(std::string& gguf, const std::string& key, uint32_t value) {
  const size_t at = gguf.find(key);
  ASSERT_NE(at, std::string::npos) << key;
  gguf.replace(at + key.size() + 4, 4, raw(value));
}

// A model's bytes in either format, to be changed and loaded.
struct Files {
  std::string gguf;             // or:
  std::string config, weights;  // a folder

  static Files of(const std::string& name, bool as_gguf) {
    if (as_gguf) return {read_bytes(golden_path(name, "model.gguf")), "", ""};
    return {"", read_bytes(golden_path(name, "config.json")),
            read_bytes(golden_path(name, "model.safetensors"))};
  }
  std::string& tensors() { return gguf.empty() ? weights : gguf; }

  std::string error() const {
    const TempFolder folder;
    if (!gguf.empty()) return load_error(folder.write("model.gguf", gguf));
    folder.write("config.json", config);
    folder.write("model.safetensors", weights);
    return load_error(folder.path());
  }
};

class LoadingTest : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  std::string name() const { return std::get<0>(GetParam()); }
  bool is_gguf() const { return std::get<1>(GetParam()); }
  Files files() const { return Files::of(name(), is_gguf()); }
  std::string path() const {
    return is_gguf() ? golden_path(name(), "model.gguf") : golden_path(name());
  }
};

// What a file of this format may lack: then the embedding is the head, or positions are not scaled.
bool may_lack(const std::string& tensor) {
  return tensor == "output.weight" || tensor == "rope_freqs.weight" ||
         tensor == "rope_factors_long.weight";
}

TEST_P(LoadingTest, EveryTensorIsNeededAndNoOther) {
  const auto opened = ModelFiles::open(path()).value();
  EXPECT_EQ(load_error(path()), "");
  for (const WeightTensor& tensor : opened->weights().tensors()) {
    std::string other = tensor.name;
    other[other.size() - std::string(".weight").size() - 1] = '?';
    Files changed = files();
    replace(changed.tensors(), tensor.name, other);
    const bool surplus = is_gguf() && may_lack(tensor.name);
    const std::string named = surplus ? str_cat("tensor '", other, "'")
                                      : str_cat("tensor '", tensor.name, "' is missing");
    EXPECT_THAT(changed.error(), HasSubstr(named));
  }
}

TEST_P(LoadingTest, LayersTooManyAreSurplus) {
  Files changed = files();
  const int layers = name() == "gemma3" ? 4 : 2;
  if (is_gguf()) {
    set_u32(changed.gguf, "block_count", static_cast<uint32_t>(layers - 1));
  } else {
    replace(changed.config, str_cat("\"num_hidden_layers\": ", layers),
            str_cat("\"num_hidden_layers\": ", layers - 1));
  }
  if (!is_gguf() && name() == "gemma3") {
    replace(changed.config, "\"full_attention\",\n    \"sliding_attention\"", "\"full_attention\"");
  }
  EXPECT_THAT(changed.error(), HasSubstr(str_cat("tensor '", is_gguf() ? "blk." : "model.layers.",
                                                 layers - 1, ".")));
  EXPECT_THAT(changed.error(), HasSubstr("is not part of this architecture"));
}

TEST_P(LoadingTest, ShapesThatDisagreeAreNamed) {
  Files changed = files();
  if (is_gguf()) {
    set_u32(changed.gguf, "embedding_length", 24);
    EXPECT_THAT(changed.error(), HasSubstr("tensor 'token_embd.weight' has shape [65, "));
  } else {
    replace(changed.config, "\"vocab_size\": 65", "\"vocab_size\": 66");
    EXPECT_THAT(changed.error(), HasSubstr("tensor 'model.embed_tokens.weight' has shape [65, "));
  }
}

TEST_P(LoadingTest, NumbersThatAreNoneAreRefusedByName) {
  const auto opened = ModelFiles::open(path()).value();
  for (const WeightTensor& tensor : opened->weights().tensors()) {
    Files changed = files();
    ASSERT_EQ(tensor.view.dtype, DType::kF32);
    const std::string bytes(static_cast<const char*>(tensor.view.data), tensor.view.bytes());
    const size_t at = changed.tensors().find(bytes);
    ASSERT_NE(at, std::string::npos);
    changed.tensors().replace(at + bytes.size() - 4, 4, raw(std::nanf("")));
    EXPECT_THAT(changed.error(), HasSubstr(str_cat("tensor '", tensor.name, "'")));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LoadingTest,
                         testing::Combine(testing::Values("gemma3", "llama", "llama_llama3",
                                                          "olmo2", "phi3", "qwen2", "qwen3",
                                                          "qwen3moe"),
                                          testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param) +
                                  (std::get<1>(info.param) ? "_gguf" : "_folder");
                         });

TEST(Loading, UnknownArchitectureListsTheKnownOnes) {
  Files folder = Files::of("llama", false);
  replace(folder.config, "LlamaForCausalLM", "GPTJForCausalLM");
  EXPECT_THAT(folder.error(), HasSubstr("architecture 'GPTJForCausalLM' cannot be run; known are: "
                                        "Gemma3ForCausalLM, LlamaForCausalLM, MistralForCausalLM"));
  Files gguf = Files::of("llama", true);
  replace(gguf.gguf, "llama", "gpt-j");
  EXPECT_THAT(gguf.error(),
              HasSubstr("architecture 'gpt-j' cannot be run; known are: gemma3, llama, olmo2"));
}

TEST(Loading, RopeScalingThatIsNotSupportedIsNamed) {
  for (const char* type : {"dynamic", "proportional"}) {
    Files folder = Files::of("llama_linear", false);
    replace(folder.config, "\"rope_type\": \"linear\"", str_cat("\"rope_type\": \"", type, "\""));
    EXPECT_THAT(folder.error(), HasSubstr("rope_parameters.rope_type: "));
    EXPECT_THAT(folder.error(), HasSubstr(str_cat("'", type, "' is not supported")));
  }
  Files folder = Files::of("phi3", false);
  replace(folder.config, "1.1,", "1.1, 1.2,");
  EXPECT_THAT(folder.error(), HasSubstr("longrope's short_factor: expected 3 factors"));
}

TEST(Loading, PartsThatWouldBeIgnoredAreRefused) {
  Files qwen = Files::of("qwen2", false);
  replace(qwen.config, "\"use_sliding_window\": false", "\"use_sliding_window\": true");
  EXPECT_THAT(qwen.error(), HasSubstr("use_sliding_window: "));
  Files gemma = Files::of("gemma3", false);
  replace(gemma.config, "\"final_logit_softcapping\": null", "\"final_logit_softcapping\": 30.0");
  EXPECT_THAT(gemma.error(), HasSubstr("final_logit_softcapping: "));
  Files mixture = Files::of("qwen3moe", false);
  replace(mixture.config, "\"num_experts_per_tok\": 3", "\"num_experts_per_tok\": 9");
  EXPECT_THAT(mixture.error(), HasSubstr("num_experts_per_tok: expected at most the 5 experts"));
}

}  // namespace
}  // namespace tinyvllm
