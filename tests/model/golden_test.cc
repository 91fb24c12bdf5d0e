// Every architecture against Hugging Face transformers on the same weights: tiny random models
// (tools/make_golden.py), from both file formats and both spellings of config.json.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

#include "tests/io/temp_folder.h"
#include "tests/model/harness.h"

namespace tinyvllm {
namespace {

// Of the span of a prompt's logits: float32 in another order of additions stays well below.
constexpr float kTolerance = 2e-4f;

// The longest prompt that fits phi3's original length; longer ones run on the long factors.
constexpr size_t kPhi3Original = 24;

enum class Form { kGguf, kFolder, kFolderV4 };
constexpr const char* kFormNames[] = {"gguf", "folder", "folder_v4"};

class GoldenTest : public testing::TestWithParam<std::tuple<std::string, Form, Isa>> {
 protected:
  std::string name() const { return std::get<0>(GetParam()); }

  // The same weights with config.json as transformers 4 wrote it.
  std::string old_folder() const {
    std::filesystem::copy(golden_path(name(), "config.v4.json"), folder_.path("config.json"));
    std::filesystem::create_symlink(golden_path(name(), "model.safetensors"),
                                    folder_.path("model.safetensors"));
    return folder_.path();
  }
  std::string path() const {
    switch (std::get<1>(GetParam())) {
      case Form::kGguf:
        return golden_path(name(), "model.gguf");
      case Form::kFolder:
        return golden_path(name());
      case Form::kFolderV4:
        return old_folder();
    }
    return "";
  }

 private:
  TempFolder folder_;
};

struct Choice {
  int64_t token;
  float margin;  // ahead of the second
};

Choice choose(const float* row, int64_t columns) {
  const float* best = std::max_element(row, row + columns);
  float second = -1e30f;
  for (const float* other = row; other < row + columns; ++other) {
    if (other != best) second = std::max(second, *other);
  }
  return {best - row, *best - second};
}

void expect_agreement(const Logits& ours, const Logits& theirs) {
  ASSERT_EQ(ours.values.size(), theirs.values.size());
  const auto [low, high] = std::minmax_element(theirs.values.begin(), theirs.values.end());
  const float tolerance = kTolerance * (*high - *low);
  float apart = 0;
  for (size_t i = 0; i < ours.values.size(); ++i) {
    const float difference = std::abs(ours.values[i] - theirs.values[i]);
    apart = difference <= apart ? apart : difference;  // NaN comes through
  }
  EXPECT_LE(apart, tolerance) << theirs.rows() << " tokens, logits span " << *high - *low;
  for (int64_t i = 0; i < theirs.rows(); ++i) {
    const Choice expected = choose(theirs.row(i), theirs.columns);
    if (expected.margin <= tolerance) continue;
    EXPECT_EQ(choose(ours.row(i), ours.columns).token, expected.token) << "after token " << i;
  }
}

TEST_P(GoldenTest, AgreesWithTransformers) {
  const auto runtime = make_runtime(2, std::get<2>(GetParam()));
  const std::string path = this->path();
  for (const GoldenPrompt& prompt : read_golden(name())) {
    ModelOptions options;
    options.kv_dtype = DType::kF32;
    if (name() == "phi3" && prompt.tokens.size() <= kPhi3Original) {
      options.max_model_len = kPhi3Original;
    }
    const LoadedModel loaded = load(*runtime, path, options);
    const std::vector<Tokens> texts = {prompt.tokens};
    expect_agreement(run_steps(*runtime, *loaded.model, texts, {whole(texts)})[0], prompt.logits);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Combine(testing::ValuesIn(kGoldenModels),
                                          testing::Values(Form::kGguf, Form::kFolder,
                                                          Form::kFolderV4),
                                          testing::ValuesIn(supported_isas())),
                         [](const auto& info) {
                           return str_cat(std::get<0>(info.param), "_",
                                          kFormNames[static_cast<int>(std::get<1>(info.param))],
                                          "_", isa_name(std::get<2>(info.param)));
                         });

}  // namespace
}  // namespace tinyvllm
