// What a sound Hugging Face folder gives: weights where they lie, configuration, defaults, text.
#include <gtest/gtest.h>

#include "io/model_files.h"
#include "io/safetensors_reader.h"
#include "safetensors_builder.h"
#include "temp_folder.h"

namespace tinyvllm {
namespace {

TEST(Safetensors, ReadsTensorsWhereTheyLie) {
  const std::string file = tiny_safetensors();
  const auto tensors = read_safetensors(file);
  ASSERT_TRUE(tensors.ok()) << tensors.message();
  ASSERT_EQ(tensors.value().size(), 2u);
  const WeightTensor& a = tensors.value()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.view.shape, (Shape{2, 3}));
  EXPECT_EQ(a.view.dtype, DType::kF16);
  EXPECT_EQ(a.view.data, file.data() + file.size() - 20);
  EXPECT_EQ(tensors.value()[1].file_offset, file.size() - 8);
}

TEST(HfFolder, ReadsConfigurationDefaultsAndText) {
  const TempFolder folder;
  folder.write("model.safetensors", tiny_safetensors());
  folder.write("config.json", R"({"model_type": "qwen2", "hidden_size": 896, "eos_token_id": 7,
      "rope_scaling": {"factor": 4.0, "type": "y\u0061rn"}, "torch_dtype": null,
      "architectures": ["Qwen2ForCausalLM"], "layer_types": [], "mixed": [1, {"a": true}]})");
  folder.write("generation_config.json",
               R"({"temperature": 0.7, "top_k": 20, "top_p": 1, "eos_token_id": [9, 7]})");
  folder.write("tokenizer.json", "{\"model\": 1}");
  folder.write("chat_template.json", R"({"chat_template": "{{ x }}\n"})");
  const auto files = ModelFiles::open(folder.path());
  ASSERT_TRUE(files.ok()) << files.message();
  const Metadata& m = files.value()->metadata();
  EXPECT_EQ(m.integer("hidden_size").value(), 896);
  EXPECT_EQ(m.number("rope_scaling.factor").value(), 4.0);
  EXPECT_EQ(m.string("rope_scaling.type").value(), "yarn");
  EXPECT_EQ(m.strings("architectures").value(), std::vector<std::string_view>{"Qwen2ForCausalLM"});
  EXPECT_TRUE(m.strings("layer_types").value().empty());
  EXPECT_TRUE(m.boolean("mixed.1.a").value());
  EXPECT_FALSE(m.has("torch_dtype"));
  const GenerationDefaults& defaults = files.value()->generation_defaults();
  EXPECT_EQ(defaults.temperature, 0.7);
  EXPECT_EQ(defaults.top_k, 20);
  EXPECT_EQ(defaults.top_p, 1.0);
  EXPECT_FALSE(defaults.min_p.has_value());
  const TokenizerData& text = files.value()->tokenizer();
  EXPECT_EQ(text.end_ids, (std::vector<int64_t>{7, 9}));
  EXPECT_EQ(text.tokenizer_json, "{\"model\": 1}");
  EXPECT_EQ(text.chat_template, "{{ x }}\n");
  EXPECT_TRUE(files.value()->weights().get("a", {2, 3}).ok());
}

// What Python's json module writes, though JSON does not know it.
TEST(HfFolder, ReadsPythonsJson) {
  const TempFolder folder;
  folder.write("model.safetensors", tiny_safetensors());
  folder.write("config.json",
               R"({"limit": [0.0, Infinity], "text": "NaN, \"Infinity", "low": -Infinity,
      "max": 1000000000000000019884624838656, "size": 7})");
  const auto files = ModelFiles::open(folder.path());
  ASSERT_TRUE(files.ok()) << files.message();
  const Metadata& m = files.value()->metadata();
  EXPECT_EQ(m.integer("size").value(), 7);
  EXPECT_EQ(m.number("max").value(), 1e30);
  EXPECT_EQ(m.string("text").value(), "NaN, \"Infinity");
  EXPECT_EQ(m.number("low").message(), "key 'low' is a string; expected a number");
  EXPECT_EQ(m.number("limit.0").value(), 0.0);
}

TEST(HfFolder, JoinsShards) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  folder.write("model-00001-of-00002.safetensors", tiny_safetensors());
  folder.write("model-00002-of-00002.safetensors",
               safetensors_file("{" + safetensors_entry("c", "F32", "[1,2]", 0, 8) + "}", 8));
  folder.write("consolidated.safetensors", "not listed, so never opened");
  folder.write("model.safetensors.index.json", R"({"metadata": {"total_size": 28}, "weight_map": {
      "a": "model-00001-of-00002.safetensors", "b": "model-00001-of-00002.safetensors",
      "c": "model-00002-of-00002.safetensors"}})");
  const auto files = ModelFiles::open(folder.path());
  ASSERT_TRUE(files.ok()) << files.message();
  const WeightSource& weights = files.value()->weights();
  EXPECT_EQ(weights.tensors().size(), 3u);
  EXPECT_EQ(weights.find("c")->file, 1);
  EXPECT_EQ(weights.get("c", {2, 1}).message(), "tensor 'c' has shape [1, 2]; expected [2, 1]");
  EXPECT_EQ(weights.get("d", {2}).message(), "tensor 'd' is missing; expected one of shape [2]");
}

TEST(HfFolder, AlignsWhatOldWritersDidNot) {
  for (const std::string padding : {"", " ", "  ", "   "}) {
    const TempFolder folder;
    folder.write("config.json", "{}");
    const std::string header = "{" + safetensors_entry("a", "F32", "[3]", 0, 12) + "}" + padding;
    const std::string file = safetensors_file(header, 12);
    folder.write("model.safetensors", file);
    const auto files = ModelFiles::open(folder.path());
    ASSERT_TRUE(files.ok()) << files.message();
    const TensorView a = files.value()->weights().get("a", {3}).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % 4, 0u);
    EXPECT_EQ(std::string(static_cast<const char*>(a.data), 12), file.substr(file.size() - 12));
  }
}

TEST(HfFolder, TokenizerFilesAloneAreEnoughForText) {
  const TempFolder folder;
  EXPECT_FALSE(ModelFiles::open_tokenizer(folder.path()).ok());
  folder.write("tokenizer.json", "{}");
  folder.write("chat_template.jinja", "hi");
  const auto files = ModelFiles::open_tokenizer(folder.path());
  ASSERT_TRUE(files.ok()) << files.message();
  EXPECT_EQ(files.value()->tokenizer().tokenizer_json, "{}");
  EXPECT_EQ(files.value()->tokenizer().chat_template, "hi");
  EXPECT_FALSE(ModelFiles::open(folder.path()).ok());
}

}  // namespace
}  // namespace tinyvllm
