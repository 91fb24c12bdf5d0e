// What a sound GGUF file gives: metadata by type, tensors where they lie, the vocabulary.
#include <gtest/gtest.h>

#include "gguf_builder.h"
#include "io/gguf_reader.h"

namespace tinyvllm {
namespace {

TEST(Gguf, ReadsTensorsWhereTheyLie) {
  const std::string file = tiny_gguf().build();
  const Result<GgufContents> contents = read_gguf(file);
  ASSERT_TRUE(contents.ok()) << contents.message();
  const std::vector<WeightTensor>& tensors = contents.value().tensors;
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].view.shape, (Shape{3, 64}));  // outermost first
  EXPECT_EQ(tensors[0].view.bytes(), 120u);
  EXPECT_EQ(tensors[1].file_offset, file.size() - 256);
  EXPECT_EQ(tensors[1].view.data, file.data() + file.size() - 256);
}

TEST(Gguf, ReadsEveryMetadataType) {
  GgufBuilder file;
  file.version = 2;
  file.pair("u8", GgufType::kU8, raw<uint8_t>(200)).pair("i8", GgufType::kI8, raw<int8_t>(-2));
  file.pair("u16", GgufType::kU16, raw<uint16_t>(60000));
  file.pair("i16", GgufType::kI16, raw<int16_t>(-300));
  file.pair("u32", GgufType::kU32, raw<uint32_t>(4000000000));
  file.pair("i32", GgufType::kI32, raw<int32_t>(-70000));
  file.pair("u64", GgufType::kU64, raw<uint64_t>(UINT64_MAX));
  file.pair("i64", GgufType::kI64, raw<int64_t>(INT64_MIN));
  file.f32("f32", 0.5f).pair("f64", GgufType::kF64, raw(0.1)).flag("flag", true).text("text", "é");
  file.array<int16_t>("shorts", GgufType::kI16, {-1, 2}).strings("words", {"a", ""});
  file.array<double>("doubles", GgufType::kF64, {0.25}).array<uint8_t>("none", GgufType::kU8, {});
  const std::string bytes = file.build();
  const Result<GgufContents> contents = read_gguf(bytes);
  ASSERT_TRUE(contents.ok()) << contents.message();
  const Metadata& m = contents.value().metadata;
  EXPECT_EQ(m.integer("u8").value(), 200);
  EXPECT_EQ(m.integer("i8").value(), -2);
  EXPECT_EQ(m.integer("u16").value(), 60000);
  EXPECT_EQ(m.integer("i16").value(), -300);
  EXPECT_EQ(m.integer("u32").value(), 4000000000);
  EXPECT_EQ(m.integer("i32").value(), -70000);
  EXPECT_EQ(m.integer("u64").message(),
            "key 'u64' is 18446744073709551615; expected at most 9223372036854775807");
  EXPECT_EQ(m.integer("i64").value(), INT64_MIN);
  EXPECT_EQ(m.number("f32").value(), 0.5);
  EXPECT_EQ(m.number("f64").value(), 0.1);
  EXPECT_EQ(m.number("u8").value(), 200);
  EXPECT_TRUE(m.boolean("flag").value());
  EXPECT_EQ(m.string("text").value(), "é");
  EXPECT_EQ(m.integers("shorts").value(), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(m.numbers("shorts").value(), (std::vector<double>{-1, 2}));
  EXPECT_EQ(m.numbers("doubles").value(), (std::vector<double>{0.25}));
  EXPECT_EQ(m.integers("none").value(), std::vector<int64_t>());
  EXPECT_EQ(m.strings("words").value(), (std::vector<std::string_view>{"a", ""}));
}

TEST(Gguf, HandsTheVocabularyOver) {
  const std::string file = tiny_gguf().build();
  Result<GgufContents> contents = read_gguf(file);
  ASSERT_TRUE(contents.ok()) << contents.message();
  Metadata& metadata = contents.value().metadata;
  const auto vocabulary = take_gguf_vocabulary(metadata);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.message();
  const GgufVocabulary& v = *vocabulary.value();
  EXPECT_EQ(v.tokens, (std::vector<std::string_view>{"<unk>", "<s>",
                                                     "\xE2\x96\x81"
                                                     "a"}));
  EXPECT_EQ(v.scores, (std::vector<float>{0, 0, -1}));
  EXPECT_EQ(v.types, (std::vector<int32_t>{2, 3, 1}));
  EXPECT_EQ(v.bos, 1);
  EXPECT_FALSE(v.eos.has_value());
  EXPECT_EQ(v.add_bos, true);
  EXPECT_FALSE(metadata.has("tokenizer.ggml.tokens"));  // moved, not copied
  EXPECT_GE(v.tokens[0].data(), file.data());
  EXPECT_LT(v.tokens[0].data(), file.data() + file.size());
}

}  // namespace
}  // namespace tinyvllm
