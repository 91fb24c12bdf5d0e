// Streaming: whatever way the tokens cut a text, what comes out is whole characters, never taken
// back, and joined the same as decoding at once; and stop strings are met exactly where they end.
#include "text/detokenizer.h"

#include <gtest/gtest.h>
#include <random>

#include "base/utf8.h"
#include "text/byte_alphabet.h"

namespace tinyvllm {
namespace {

// A vocabulary of the 256 bytes and one control token: every possible split of a character occurs.
class BytesTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    for (int byte = 0; byte < 256; ++byte) {
      tokens_.push_back(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
    }
    tokens_.push_back("<|end|>");
    GgufVocabulary vocabulary;
    vocabulary.model = "gpt2";
    vocabulary.pre = "gpt-2";
    vocabulary.tokens = {tokens_.begin(), tokens_.end()};
    vocabulary.types.assign(tokens_.size(), GgufVocabulary::kNormal);
    vocabulary.types.back() = GgufVocabulary::kControl;
    TokenizerData data;
    data.gguf = vocabulary;
    auto created = Tokenizer::create(data);
    ASSERT_TRUE(created.ok()) << created.message();
    tokenizer_ = std::move(created).value();
  }

  std::vector<int32_t> bytes(std::string_view text) const {
    std::vector<int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
    return ids;
  }

  // All that a detokenizer says about the ids; checks that each part of it is whole characters.
  std::string streamed(const std::vector<int32_t>& ids, Detokenizer& detokenizer) const {
    std::string text;
    for (const int32_t id : ids) {
      const std::string delta = detokenizer.push(id);
      EXPECT_TRUE(is_utf8(delta)) << printable(delta);
      text += delta;
    }
    return text + detokenizer.finish();
  }

  std::vector<std::string> tokens_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(BytesTokenizer, JoinedDeltasAreTheDecodedWhole) {
  std::mt19937 random(1);
  const std::string_view characters[] = {"a",    " ",        "é",    "漢",      "👩‍💻",
                                         "\xE6", "\xBC\xA2", "\xFF", "\xF0\x9F"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text += characters[random() % std::size(characters)];
    const std::vector<int32_t> ids = bytes(text);
    Detokenizer detokenizer(*tokenizer_, {});
    EXPECT_EQ(streamed(ids, detokenizer), tokenizer_->decode(ids, true));
    EXPECT_EQ(tokenizer_->decode(ids, true), utf8_replace_invalid(text)) << printable(text);
  }
}

TEST_F(BytesTokenizer, HoldsBackNoMoreThanAnUnfinishedCharacter) {
  Detokenizer detokenizer(*tokenizer_, {});
  std::vector<std::string> deltas;
  for (const int32_t id : bytes("a漢b")) deltas.push_back(detokenizer.push(id));
  EXPECT_EQ(deltas, (std::vector<std::string>{"a", "", "", "漢", "b"}));
}

TEST_F(BytesTokenizer, ControlTokensAreSkippedOrSpelled) {
  const std::vector<int32_t> ids = {'h', 'i', 256};
  EXPECT_EQ(tokenizer_->decode(ids, true), "hi");
  EXPECT_EQ(tokenizer_->decode(ids, false), "hi<|end|>");
  EXPECT_TRUE(tokenizer_->is_end(256));
  EXPECT_EQ(tokenizer_->encode("<|end|>", {.parse_special = true}), (std::vector<int32_t>{256}));
  EXPECT_EQ(tokenizer_->encode("<|end|>", {}), bytes("<|end|>"));
}

// The judge: find the stop string that ends first in the whole text.
std::string cut_at_stop(const std::string& text, const std::vector<std::string>& stops,
                        bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop))
        longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, include ? end : end - longest);
  }
  return text;
}

TEST_F(BytesTokenizer, StopStringsEndTheTextWhereTheyEnd) {
  std::mt19937 random(2);
  const auto random_text = [&](size_t most) {
    std::string text;
    for (size_t i = random() % (most + 1); i > 0; --i) text += "ab\xE6\xBC"[random() % 4];
    return text;
  };
  int stopped = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string text = utf8_replace_invalid(random_text(30));
    std::vector<std::string> stops;
    for (size_t i = random() % 3; i > 0; --i) stops.push_back(utf8_replace_invalid(random_text(6)));
    const bool include = random() % 2 == 0;
    Detokenizer detokenizer(*tokenizer_, {.stop = stops, .include_stop = include});
    EXPECT_EQ(streamed(bytes(text), detokenizer), cut_at_stop(text, stops, include));
    stopped += detokenizer.stopped() ? 1 : 0;
  }
  EXPECT_GT(stopped, 1000);
}

TEST_F(BytesTokenizer, WhatWasNotAStopStringIsReleased) {
  Detokenizer detokenizer(*tokenizer_, {.stop = {"</s>"}});
  std::string text;
  for (const int32_t id : bytes("a </")) text += detokenizer.push(id);
  EXPECT_EQ(text, "a ");
  text += detokenizer.push('b');
  EXPECT_EQ(text, "a </b");
}

}  // namespace
}  // namespace tinyvllm
