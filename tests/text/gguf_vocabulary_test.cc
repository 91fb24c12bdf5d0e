// Vocabularies from GGUF metadata: what is refused, and by which names.
#include <gtest/gtest.h>
#include <string>

#include "text/tokenizer.h"

namespace tinyvllm {
namespace {

TokenizerData data_of(GgufVocabulary vocabulary) {
  TokenizerData data;
  data.gguf = std::move(vocabulary);
  return data;
}

GgufVocabulary small() {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  vocabulary.tokens = {"a", "b", "ab", "<|end|>"};
  vocabulary.types = {1, 1, 1, 3};
  vocabulary.merges = {"a b"};
  return vocabulary;
}

std::string refusal(const GgufVocabulary& vocabulary) {
  const auto created = Tokenizer::create(data_of(vocabulary));
  EXPECT_FALSE(created.ok());
  return created.message();
}

TEST(GgufVocabulary, UnknownNamesListTheKnownOnes) {
  GgufVocabulary vocabulary = small();
  vocabulary.pre = "klingon";
  const std::string message = refusal(vocabulary);
  for (const char* name :
       {"'klingon'", "default", "gpt-2", "llama-bpe", "qwen2", "smollm", "deepseek-llm",
        "deepseek-v3", "tekken", "refact", "starcoder", "falcon", "gpt-4o"}) {
    EXPECT_NE(message.find(name), std::string::npos) << name << " in: " << message;
  }
  vocabulary.model = "bert";
  EXPECT_EQ(refusal(vocabulary),
            "tokenizer.ggml.model: unknown tokenizer 'bert'; known are: gpt2, llama, t5");
}

TEST(GgufVocabulary, EveryNamedPreTokenizerCanBeMade) {
  GgufVocabulary vocabulary = small();
  vocabulary.pre = "klingon";
  std::string list = refusal(vocabulary);
  list = list.substr(list.find("known are: ") + 11);
  int made = 0;
  for (size_t at = 0; at < list.size(); ++made) {
    const size_t end = std::min(list.find(", ", at), list.size());
    vocabulary.pre = std::string_view(list).substr(at, end - at);
    vocabulary.bos = 0;
    const auto created = Tokenizer::create(data_of(vocabulary));
    ASSERT_TRUE(created.ok()) << created.message();
    EXPECT_EQ(created.value()->encode("ab", {.add_special = false}), (std::vector<int32_t>{2}))
        << vocabulary.pre;
    at = end + 2;
  }
  EXPECT_GT(made, 60);
}

TEST(GgufVocabulary, RefusesWhatDoesNotFitTogether) {
  GgufVocabulary vocabulary = small();
  vocabulary.tokens.clear();
  vocabulary.types.clear();
  EXPECT_EQ(refusal(vocabulary), "tokenizer.ggml.tokens: missing or empty");
  vocabulary = small();
  vocabulary.types.pop_back();
  EXPECT_NE(refusal(vocabulary).find("4 tokens but 3 types"), std::string::npos);
  vocabulary = small();
  vocabulary.merges = {"ab"};
  EXPECT_NE(refusal(vocabulary).find("merges[0]: expected two tokens"), std::string::npos);
  vocabulary.merges = {"a c"};
  EXPECT_NE(refusal(vocabulary).find("not in tokenizer.ggml.tokens"), std::string::npos);
  vocabulary = small();
  vocabulary.eos = 4;
  EXPECT_NE(refusal(vocabulary).find("eos_token_id: token 4 is outside"), std::string::npos);
  vocabulary = small();
  vocabulary.add_bos = true;
  EXPECT_NE(refusal(vocabulary).find("no bos_token_id"), std::string::npos);
  vocabulary = small();
  vocabulary.model = "llama";
  EXPECT_EQ(refusal(vocabulary), "tokenizer.ggml.scores: missing");
}

TEST(GgufVocabulary, ControlTokensOnlyOnDemandAndEndsByName) {
  const auto created = Tokenizer::create(data_of(small()));
  ASSERT_TRUE(created.ok()) << created.message();
  const Tokenizer& tokenizer = *created.value();
  EXPECT_EQ(tokenizer.end_ids(), (std::vector<int32_t>{3}));
  EXPECT_EQ(tokenizer.encode("ab<|end|>", {.parse_special = true}), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(tokenizer.encode("ab<|end|>", {}),
            (std::vector<int32_t>{2}));  // the rest has no tokens
  EXPECT_EQ(tokenizer.kind(), "byte-level BPE (gpt-2)");
}

}  // namespace
}  // namespace tinyvllm
