// What the real model thinks of five texts, token by token, beside what llama.cpp computes from the
// same weights in F32 (tools/make_logprobs.py says why not from the 4-bit weights as they are).
#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <simdjson.h>

#include "engine/scorer.h"
#include "model/convert/write_gguf.h"
#include "model/registry.h"
#include "tests/data.h"
#include "tests/engine/smollm2.h"
#include "tests/io/temp_folder.h"
#include "text/tokenizer.h"

namespace tinyvllm {
namespace {

struct ScoredText {
  std::string text;
  std::vector<int32_t> ids;
  // What llama.cpp gave ids[1], ids[2], …; its choice there, and how far that was ahead.
  std::vector<double> logprobs;
  std::vector<int32_t> best;
  std::vector<double> margins;
  std::vector<double> as_quantized;  // its log-probabilities from the 4-bit weights
};

template <class T>
std::vector<T> list(simdjson::dom::element item, const char* key) {
  std::vector<T> values;
  for (const simdjson::dom::element value : item[key].get_array()) {
    values.push_back(static_cast<T>(double(value)));
  }
  return values;
}

std::vector<ScoredText> read_texts() {
  simdjson::dom::parser parser;
  std::vector<ScoredText> texts;
  for (const simdjson::dom::element item : parser.load(test_data("smollm2_logprobs.json"))) {
    texts.push_back({std::string(item["text"].get_string().value()), list<int32_t>(item, "ids"),
                     list<double>(item, "logprobs"), list<int32_t>(item, "best"),
                     list<double>(item, "margins"), list<double>(item, "as_quantized")});
  }
  return texts;
}

struct Agreement {
  int tokens = 0;
  double difference = 0;  // mean, in nats
  double peers_own = 0;   // the same between llama.cpp's two ways to compute
  double same_choice = 0;
  double widest_margin = 0;  // of llama.cpp, where our choice is another
};

Agreement compare(const std::string& path) {
  const auto files = ModelFiles::open(path).value();
  const auto tokenizer = Tokenizer::create(files->tokenizer()).value();
  const auto runtime = Runtime::create({2}).value();
  const auto model = load_model(*files, runtime->device(), runtime->pool(), {}).value();
  const auto scorer = Scorer::create(*runtime, *model, 512).value();
  Agreement a;
  for (const ScoredText& text : read_texts()) {
    EXPECT_EQ(tokenizer->encode(text.text, {true, false}), text.ids);
    const std::vector<TokenScore> scores = scorer->score(text.ids, 1).value();
    EXPECT_EQ(scores.size(), text.logprobs.size());
    for (size_t i = 0; i < scores.size(); ++i) {
      a.tokens += 1;
      a.difference += std::abs(scores[i].logprob - text.logprobs[i]);
      a.peers_own += std::abs(text.as_quantized[i] - text.logprobs[i]);
      if (scores[i].best == text.best[i]) {
        a.same_choice += 1;
      } else {
        a.widest_margin = std::max(a.widest_margin, text.margins[i]);
      }
    }
  }
  a.difference /= a.tokens;
  a.peers_own /= a.tokens;
  a.same_choice /= a.tokens;
  return a;
}

class Logprobs : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(smollm2_path()))
        << "fetch it with: tools/get_model smollm2";
  }
};

TEST_F(Logprobs, AgreeWithLlamaCpp) {
  const TempFolder folder;
  const std::string expanded = folder.path("f32.gguf");
  {
    const auto files = ModelFiles::open(smollm2_path()).value();
    const auto runtime = Runtime::create({2}).value();
    GgufModel model = gguf_model_of(*files, runtime->device(), runtime->pool()).value();
    const auto type = file_type_from_name("F32").value();
    ASSERT_TRUE(write_gguf(model, type, expanded, runtime->pool(), {}).ok());
  }
  const Agreement a = compare(expanded);
  EXPECT_GT(a.tokens, 1000);
  EXPECT_LE(a.difference, 0.004);  // 0.002: llama.cpp adds up values in F16
  EXPECT_GE(a.same_choice, 0.995);
  EXPECT_LE(a.widest_margin, 0.02);
}

// As `run` multiplies them: the 4-bit weights with rounded activations. No further from the F32
// computation than llama.cpp is when it does the same, and never certain of another choice.
TEST_F(Logprobs, OfQuantizedWeightsAreAsCloseAsLlamaCppsOwn) {
  const Agreement a = compare(smollm2_path());
  EXPECT_LE(a.difference, a.peers_own) << "llama.cpp's own rounding against ours";
  EXPECT_GE(a.same_choice, 0.95);
  EXPECT_LE(a.widest_margin, 0.5);
}

}  // namespace
}  // namespace tinyvllm
