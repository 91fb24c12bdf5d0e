// tokenizer.json: what is refused and how it is said, and what must hold for every tokenizer.
// Whether ids are right is judged by tokenizer_check.py.
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <thread>

#include "base/utf8.h"
#include "text/tokenizer.h"

namespace tinyvllm {
namespace {

// A small tokenizer in the shape of Llama 2's, with parts to replace.
struct Parts {
  std::string normalizer =
      R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
          {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})";
  std::string pre_tokenizer = "null";
  std::string post_processor =
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
          {"Sequence": {"id": "A", "type_id": 0}}],
          "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}})";
  std::string decoder =
      R"({"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
          {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";
  std::string model = "";  // empty: bytes, letters and a few merges

  std::string json() const {
    std::string vocabulary = R"("<unk>": 0, "<s>": 1, "</s>": 2)";
    int id = 3;
    for (int byte = 0; byte < 256; ++byte) {
      char name[16];
      std::snprintf(name, sizeof name, "<0x%02X>", byte);
      vocabulary += str_cat(", \"", name, "\": ", id++);
    }
    for (const char* token : {"▁", "a", "b", "c", "ab", "▁a", "▁ab", "漢"}) {
      vocabulary += str_cat(", \"", token, "\": ", id++);
    }
    const std::string bpe = str_cat(
        R"({"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": {)",
        vocabulary, R"(}, "merges": ["a b", "▁ a", ["▁", "ab"]]})");
    return str_cat(R"({"version": "1.0", "added_tokens": [
        {"id": 1, "content": "<s>", "special": true, "normalized": false},
        {"id": 2, "content": "</s>", "special": true, "normalized": false}],
        "normalizer": )",
                   normalizer, R"(, "pre_tokenizer": )", pre_tokenizer, R"(, "post_processor": )",
                   post_processor, R"(, "decoder": )", decoder, R"(, "model": )",
                   model.empty() ? bpe : model, "}");
  }
};

Result<std::unique_ptr<Tokenizer>> create(const std::string& json, std::string_view config = "") {
  TokenizerData data;
  data.tokenizer_json = json;
  data.tokenizer_config_json = config;
  return Tokenizer::create(data);
}

std::unique_ptr<Tokenizer> make(const Parts& parts = {}) {
  auto created = create(parts.json());
  EXPECT_TRUE(created.ok()) << created.message();
  return created.ok() ? std::move(created).value() : nullptr;
}

std::string refusal(const Parts& parts) {
  const auto created = create(parts.json());
  EXPECT_FALSE(created.ok());
  return created.message();
}

TEST(TokenizerJson, NamesWhatItDoesNotKnowAndWhatItDoes) {
  EXPECT_EQ(
      refusal({.normalizer = R"({"type": "BertNormalizer"})"}),
      "tokenizer.json: normalizer.type: 'BertNormalizer' is not supported; known are: ByteLevel, "
      "Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Sequence, Strip, "
      "StripAccents");
  EXPECT_NE(refusal({.pre_tokenizer =
                         R"({"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]})"})
                .find("pre_tokenizer.pretokenizers[0].type: 'UnicodeScripts' is not supported"),
            std::string::npos);
  EXPECT_NE(refusal({.decoder = R"({"type": "CTC"})"}).find("decoder.type: 'CTC'"),
            std::string::npos);
  EXPECT_NE(
      refusal({.post_processor = R"({"type": "Dance"})"}).find("post_processor.type: 'Dance'"),
      std::string::npos);
  EXPECT_NE(refusal({.model = R"({"type": "WordPiece", "vocab": {}})"})
                .find("known are: BPE, Unigram, WordLevel"),
            std::string::npos);
}

TEST(TokenizerJson, NamesThePlaceOfWhatIsWrong) {
  const std::pair<Parts, const char*> cases[] = {
      {{.normalizer = R"({"type": "Prepend"})"}, "normalizer.prepend: missing"},
      {{.normalizer = R"({"type": "Prepend", "prepend": 3})"},
       "normalizer.prepend: expected a string, found a number"},
      {{.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": "####"})"}, "not base64"},
      {{.normalizer = R"({"type": "Precompiled", "precompiled_charsmap": "AAAA"})"},
       "precompiled_charsmap"},
      {{.pre_tokenizer = R"({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"})"},
       "'(' without ')'"},
      {{.pre_tokenizer = R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Eaten"})"},
       "'Eaten' is not known"},
      {{.pre_tokenizer = R"({"type": "Metaspace", "replacement": "ab"})"},
       "expected one character"},
      {{.pre_tokenizer = R"({"type": "FixedLength", "length": 0})"}, "at least 1"},
      {{.post_processor = R"({"type": "TemplateProcessing", "single": [], "special_tokens": {}})"},
       "found it 0 times"},
      {{.post_processor =
            R"({"type": "RobertaProcessing", "cls": ["<s>", 9999], "sep": ["</s>", 2]})"},
       "no token 9999"},
      {{.decoder =
            R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteFallback"}]})"},
       "after Fuse"},
      {{.model = R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})"},
       "'b' is not in the vocabulary"},
      {{.model = R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})"},
       "merges[0]: expected two tokens"},
      {{.model = R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"}, "has id -1"},
      {{.model = R"({"type": "BPE", "vocab": {"a": 4000000000}, "merges": []})"},
       "has id 4000000000"},
      {{.model = R"({"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": []})"}, "dropout"},
      {{.model = R"({"type": "Unigram", "unk_id": 7, "vocab": [["a", 0.0]]})"},
       "there is no token 7"},
      {{.model = R"({"type": "Unigram", "vocab": [["a"]]})"}, "pairs of a token and its score"},
  };
  for (const auto& [parts, words] : cases) {
    const std::string message = refusal(parts);
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }
  EXPECT_NE(create("[1]").message().find("expected an object"), std::string::npos);
  EXPECT_NE(create("{").message().find("not JSON"), std::string::npos);
}

TEST(TokenizerJson, KnowsModelsThatDoNotSayWhatTheyAre) {
  const auto bpe =
      make({.post_processor = "null", .model = R"({"vocab": {"<s>": 0, "▁": 1}, "merges": []})"});
  EXPECT_EQ(bpe->kind(), "BPE (tokenizer.json)");
  const auto unigram = make({.post_processor = "null",
                             .model = R"({"unk_id": 0, "vocab": [["<unk>", 0.0], ["▁", -1.0]]})"});
  EXPECT_EQ(unigram->kind(), "Unigram (tokenizer.json)");
  EXPECT_NE(refusal({.model = R"({"vocab": {"a": 0}})"}).find("model.type: missing"),
            std::string::npos);
}

TEST(TokenizerJson, EndsWhereTheFilesSay) {
  const Parts parts;
  auto created = create(
      parts.json(),
      R"({"eos_token": {"content": "ab"}, "model_max_length": 1000000000000000019884624838656})");
  ASSERT_TRUE(created.ok()) << created.message();
  EXPECT_EQ(created.value()->end_ids(), (std::vector<int32_t>{263}));
  TokenizerData data;
  const std::string json = parts.json();
  data.tokenizer_json = json;
  data.end_ids = {2, 2, 5, 9999};
  EXPECT_EQ(Tokenizer::create(data).value()->end_ids(), (std::vector<int32_t>{2, 5}));
}

TEST(TokenizerJson, BadBytesAreReadAsTheReplacementCharacter) {
  const auto tokenizer = make();
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += static_cast<char>(random());
    EXPECT_EQ(tokenizer->encode(text, {}), tokenizer->encode(utf8_replace_invalid(text), {}));
  }
}

// Spans that cut characters, or that are of a text with bad bytes, trust nothing.
TEST(TokenizerJson, TrustNeedsSoundText) {
  Parts parts;
  parts.normalizer = R"({"type": "NFC"})";
  std::string json = parts.json();
  json.replace(json.find(R"("normalized": false)"), 19, R"("normalized": true )");  // <s>
  const auto created = create(json);
  ASSERT_TRUE(created.ok()) << created.message();
  const auto holds_control = [&](std::string_view text, Span span) {
    const TrustedText trusted{{span}};
    const auto ids = created.value()->encode(text, {.add_special = false, .trusted = &trusted});
    return std::count(ids.begin(), ids.end(), 1) + std::count(ids.begin(), ids.end(), 2) > 0;
  };
  EXPECT_TRUE(holds_control("e\u0301<s>a", {3, 6}));
  EXPECT_FALSE(holds_control("e\u0301<s>a", {2, 6}));
  EXPECT_TRUE(holds_control("\uFFFD</s>", {3, 7}));
  EXPECT_FALSE(holds_control("\xFF</s>", {1, 5}));
  EXPECT_FALSE(holds_control("\xFF</s>", {3, 7}));
}

// Whatever the tokens and whatever the steps: each delta is whole characters, all of them joined
// are what decoding gives, and what the tokens so far gave is never taken back.
TEST(TokenizerJson, StreamsWhatItDecodes) {
  const Parts shapes[] = {
      {},
      {.decoder = R"({"type": "ByteLevel"})"},
      {.decoder = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})"},
      {.decoder = R"({"type": "BPEDecoder", "suffix": "b"})"},
      {.decoder = R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
                      {"type": "Strip", "content": "▁", "start": 2, "stop": 2}]})"},
      {.decoder = R"({"type": "Strip", "content": "a", "start": 1, "stop": 0})"},
      {.decoder = R"({"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": "é"})"},
      {.decoder = "null"},
  };
  std::mt19937 random(5);
  for (const Parts& shape : shapes) {
    const auto tokenizer = make(shape);
    for (int round = 0; round < 400; ++round) {
      std::vector<int32_t> ids;
      for (size_t n = random() % 14; n > 0; --n) {
        // Bytes of 漢 often, so that characters are put together, cut short and mixed up.
        const int32_t pool[] = {3 + 0xE6, 3 + 0xBC, 3 + 0xA2, 259, 263, 264, 1, 2, 9999, -1};
        ids.push_back(random() % 4 == 0 ? static_cast<int32_t>(random() % 270)
                                        : pool[random() % 10]);
      }
      const bool skip = random() % 2 == 0;
      const auto stream = tokenizer->stream(skip);
      std::string text;
      for (const int32_t id : ids) {
        std::string delta;
        stream->push(id, delta);
        EXPECT_TRUE(is_utf8(delta)) << printable(delta);
        text += delta;
      }
      stream->finish(text);
      EXPECT_EQ(text, tokenizer->decode(ids, skip)) << shape.decoder;
    }
  }
}

TEST(TokenizerJson, OneTokenizerServesManyThreads) {
  const auto tokenizer = make();
  const std::string text =
      "ab ab c 漢 abba cab \xE2\x96\x81"
      "ab 日本 aab";
  const std::vector<int32_t> expected = make()->encode(text, {});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) count += tokenizer->encode(text, {}) == expected ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace tinyvllm
