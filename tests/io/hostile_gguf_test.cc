// GGUF files that lie. Each is a sound file with one thing wrong; each must be refused in words
// that name the thing, without reading past the end (sanitizers watch) or allocating for its
// claims. The CVE numbers are those of other readers that fell for the same kind of file.
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

#include "allocation_meter.h"
#include "gguf_builder.h"
#include "io/gguf_reader.h"

namespace tinyvllm {
namespace {

constexpr size_t kSmall = 64 << 10;  // far below any claim in these files
constexpr uint64_t kHuge[] = {uint64_t{1} << 31,       uint64_t{1} << 32, uint64_t{1} << 61,
                              (uint64_t{1} << 61) + 1, uint64_t{1} << 63, UINT64_MAX - 31,
                              UINT64_MAX - 7,          UINT64_MAX};

// What the reader says about these bytes; empty when it accepts them.
std::string complaint(const std::string& bytes) {
  // Exactly as many bytes as there are, so that one too far is seen.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  reset_largest_allocation();
  Result<GgufContents> contents = read_gguf({exact.data(), exact.size()});
  std::string message = contents.ok() ? "" : contents.message();
  if (contents.ok()) {
    const auto vocabulary = take_gguf_vocabulary(contents.value().metadata);
    if (!vocabulary.ok()) message = vocabulary.message();
  }
  EXPECT_LT(largest_allocation(), kSmall) << message;
  return message;
}

void expect_refused(const std::string& bytes, const std::string& words) {
  EXPECT_NE(complaint(bytes).find(words), std::string::npos)
      << "expected: " << words << "\nfound:    " << complaint(bytes);
}

std::string patched(std::string bytes, size_t at, const std::string& patch) {
  return bytes.replace(at, patch.size(), patch);
}

std::string array_value(uint32_t type, uint64_t count, const std::string& elements = "") {
  return raw(type) + raw(count) + elements;
}

TEST(HostileGguf, TheSoundFileIsAccepted) { EXPECT_EQ(complaint(tiny_gguf().build()), ""); }

TEST(HostileGguf, TruncatedAnywhere) {
  std::vector<size_t> boundaries;
  const std::string file = tiny_gguf().build(&boundaries);
  ASSERT_GT(boundaries.size(), 15u);
  for (size_t cut = 0; cut < file.size(); ++cut) {
    EXPECT_NE(complaint(file.substr(0, cut)), "") << "cut at " << cut;
  }
  expect_refused("", "magic at offset 0: only 0 bytes are left");
  expect_refused(file.substr(0, boundaries[1]), "version at offset 4");
  expect_refused(file.substr(0, boundaries[2]), "tensor count at offset 8");
  expect_refused(file.substr(0, boundaries[3]), "metadata count at offset 16");
}

// No value of any single byte leads astray, whatever it turns into.
TEST(HostileGguf, EveryByteChanged) {
  const std::string file = tiny_gguf().build();
  const size_t header = file.size() - 256 - 120;
  for (size_t at = 0; at < header; ++at) {
    for (const int value : {0, 1, 8, 9, 0x7F, 0x80, 0xFF}) {
      complaint(patched(file, at, std::string(1, static_cast<char>(value))));
    }
  }
}

TEST(HostileGguf, NotOurKindOfFile) {
  GgufBuilder file = tiny_gguf();
  file.magic = 0x46555547;
  expect_refused(file.build(), "expected the magic bytes 'GGUF', found 'GUUF'");
  file = tiny_gguf();
  file.version = 1;
  expect_refused(file.build(), "version 1 is not supported");
  file.version = 4;
  expect_refused(file.build(), "GGUF version 4; expected 2 or 3");
  file.version = 0x03000000;
  expect_refused(file.build(), "big-endian");
  file.version = 0;
  expect_refused(file.build(), "GGUF version 0");
}

// CVE-2024-21836 (tensor count), CVE-2024-23605 (metadata count).
TEST(HostileGguf, CountsTheFileCannotHold) {
  const std::string file = tiny_gguf().build();
  for (const uint64_t count : kHuge) {
    expect_refused(patched(file, 8, raw(count)), str_cat("tensor count is ", count));
    expect_refused(patched(file, 16, raw(count)), str_cat("metadata count is ", count));
  }
  expect_refused(patched(file, 8, raw<uint64_t>(3)), "name of tensor 2");  // one too many
}

// CVE-2024-23496: a length that wraps when one is added.
TEST(HostileGguf, StringsLongerThanTheFile) {
  for (const uint64_t length : kHuge) {
    expect_refused(GgufBuilder().raw_pair(raw(length) + "some bytes that follow").build(),
                   str_cat("metadata key 0 at offset 24: length ", length));
    const std::string value = raw(length) + "some bytes";
    expect_refused(GgufBuilder().pair("k", GgufType::kString, value).build(),
                   str_cat("value of key 'k' at offset 37: length ", length));
    expect_refused(GgufBuilder().pair("k", GgufType::kArray, array_value(8, 1, value)).build(),
                   "element 0 of key 'k'");
  }
}

// CVE-2024-21825: count × element size wraps.
TEST(HostileGguf, ArraysLongerThanTheFile) {
  for (uint32_t type = 0; type < kGgufTypeCount; ++type) {
    if (type == static_cast<uint32_t>(GgufType::kArray)) continue;
    for (const uint64_t count : kHuge) {
      expect_refused(GgufBuilder().pair("k", GgufType::kArray, array_value(type, count)).build(),
                     str_cat("key 'k' at offset 41: an array of ", count));
    }
  }
}

// CVE-2024-32878, CVE-2024-41130: arrays that end or change their kind half-way.
TEST(HostileGguf, ArraysOfTheWrongKind) {
  const auto with = [](const std::string& value) {
    return GgufBuilder().pair("k", GgufType::kArray, value).build();
  };
  expect_refused(with(array_value(9, 1, array_value(4, 1, raw(7)))), "an array of arrays");
  expect_refused(with(array_value(13, 1, raw(7))), "value type 13; expected 0 to 12");
  expect_refused(with(array_value(8, 2, gguf_string("a long word"))), "element 1 of key 'k'");
  expect_refused(with(raw<uint16_t>(4)), "type of key 'k'");
}

TEST(HostileGguf, ValuesThatAreNotWhatTheySay) {
  GgufBuilder twice = tiny_gguf();
  expect_refused(twice.u32("llama.block_count", 3).build(), "'llama.block_count' at offset");
  expect_refused(twice.build(), "appears twice");
  const auto with = [](uint32_t type, const std::string& value) {
    return GgufBuilder().raw_pair(gguf_string("k") + raw(type) + value).build();
  };
  expect_refused(with(13, "x"), "key 'k' at offset 33: value type 13");
  expect_refused(with(UINT32_MAX, "x"), "value type 4294967295");
  expect_refused(with(7, "\2"), "flag is 2; expected 0 or 1");
  expect_refused(with(8, gguf_string("\xFF")), "'\\xff' is not UTF-8");
  expect_refused(GgufBuilder().text("\xC0\x80", "v").build(), "'\\xc0\\x80' is not UTF-8");
  expect_refused(GgufBuilder().text("", "v").build(), "metadata key 0 at offset 24 is empty");
  expect_refused(GgufBuilder().text(std::string(65536, 'k'), "v").build(), "length 65536");
}

TEST(HostileGguf, Alignments) {
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 1u << 31, UINT32_MAX}) {
    GgufBuilder file = tiny_gguf();
    expect_refused(file.u32("general.alignment", alignment).build(), "key 'general.alignment' is");
  }
  expect_refused(tiny_gguf().text("general.alignment", "32").build(),
                 "key 'general.alignment' is a string; expected an integer");
  GgufBuilder wide;
  wide.alignment = 4096;
  wide.u32("general.alignment", 4096).tensor("a", {4}, DType::kF32, 16);
  EXPECT_EQ(complaint(wide.build()), "");
  expect_refused(
      GgufBuilder().u32("general.alignment", 1 << 30).tensor("a", {4}, DType::kF32, 16).build(),
      "tensor data begins at offset 1073741824");
}

std::string with_tensor(const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset = 0) {
  GgufBuilder file;
  file.tensor("first", {8}, DType::kF32, 32).raw_tensor("second", dims, type, offset);
  return file.build();
}

// CVE-2024-21802 (rank), CVE-2026-33298 (products of dimensions that wrap), CVE-2026-7482 (shapes
// that claim more than is there).
TEST(HostileGguf, ShapesThatLie) {
  constexpr uint64_t kTwo32 = uint64_t{1} << 32;
  expect_refused(with_tensor({1, 1, 1, 1, 1}, 0), "5 dimensions; expected at most 4");
  expect_refused(GgufBuilder().raw_tensor("t", {}, 0, 0).build().replace(33, 4, raw(UINT32_MAX)),
                 "4294967295 dimensions");
  expect_refused(with_tensor({0}, 0), "dimension 0 is 0; expected at least 1");
  expect_refused(with_tensor({4, 0, 4}, 0), "dimension 1 is 0");
  for (const uint64_t size : kHuge) {
    expect_refused(with_tensor({size}, 0), str_cat("dimension 0 is ", size));
    expect_refused(with_tensor({4, size}, 0), str_cat("dimension 1 is ", size));
  }
  expect_refused(with_tensor({kTwo32, kTwo32}, 0), "dimension 0");
  expect_refused(with_tensor({256, 256, 256, 256}, 0), "tensor 'second' at offset");
  expect_refused(with_tensor({32}, 0), "128 bytes at data offset 0 reach past the 32 bytes");
}

TEST(HostileGguf, TensorTypes) {
  for (const uint32_t type : {4u, 5u, 31u, 36u, 38u, 43u, 255u, 256u, UINT32_MAX}) {
    expect_refused(with_tensor({8}, type), str_cat("type ", type, " is not a known ggml type"));
  }
  expect_refused(with_tensor({31}, 2), "rows of 31 elements; Q4_0 needs a multiple of 32");
  expect_refused(with_tensor({32, 2}, 12), "rows of 32 elements; Q4_K needs a multiple of 256");
}

// CVE-2025-53630, CVE-2026-27940: offsets and sizes whose sum wraps.
TEST(HostileGguf, OffsetsOutsideOrOverlapping) {
  for (const uint64_t offset :
       {uint64_t{32}, uint64_t{1} << 31, uint64_t{1} << 63, UINT64_MAX - 31}) {
    expect_refused(with_tensor({8}, 0, offset), str_cat("32 bytes at data offset ", offset));
  }
  expect_refused(with_tensor({1}, 0, 4), "data offset 4; expected a multiple of 32");
  expect_refused(with_tensor({8}, 0, UINT64_MAX), "data offset 18446744073709551615; expected");
  expect_refused(with_tensor({8}, 0, 0), "tensors 'first' and 'second' overlap");
}

TEST(HostileGguf, TensorNames) {
  GgufBuilder twice;
  twice.tensor("a", {8}, DType::kF32, 32).tensor("a", {8}, DType::kF32, 32);
  expect_refused(twice.build(), "tensor 'a' appears twice");
  const auto named = [](const std::string& name) {
    return GgufBuilder().tensor(name, {8}, DType::kF32, 32).build();
  };
  expect_refused(named(""), "tensor 0 at offset 24 has no name");
  expect_refused(named("\x80"), "is not UTF-8");
  expect_refused(named(std::string(256, 'n')), "name of tensor 0 at offset 24: length 256");
}

GgufBuilder vocabulary(const std::function<void(GgufBuilder&)>& change) {
  GgufBuilder file;
  file.text("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"a", "b"});
  change(file);
  return file;
}

void expect_vocabulary_refused(const std::function<void(GgufBuilder&)>& change,
                               const std::string& words) {
  expect_refused(vocabulary(change).build(), words);
}

// CVE-2025-49847, CVE-2025-52566: lengths and ids that change their sign on the way.
TEST(HostileGguf, VocabulariesThatDisagree) {
  using F = GgufBuilder&;
  expect_vocabulary_refused(
      [](F f) { f.array<float>("tokenizer.ggml.scores", GgufType::kF32, {1}); },
      "'tokenizer.ggml.scores' has 1 elements; expected one for each of the 2 tokens");
  expect_vocabulary_refused(
      [](F f) {
        f.array<float>("tokenizer.ggml.scores", GgufType::kF32, {1, NAN});
      },
      "'tokenizer.ggml.scores': element 1 is not a number");
  expect_vocabulary_refused([](F f) { f.text("tokenizer.ggml.scores", "high"); },
                            "is a string; expected an array of float32");
  for (const int32_t type : {-1, 7, INT32_MIN, INT32_MAX}) {
    expect_vocabulary_refused(
        [&](F f) {
          f.array<int32_t>("tokenizer.ggml.token_type", GgufType::kI32, {1, type});
        },
        str_cat("element 1 is ", type));
  }
  expect_vocabulary_refused(
      [](F f) {
        f.array<int32_t>("tokenizer.ggml.token_type", GgufType::kI32, {1, 1, 1});
      },
      "'tokenizer.ggml.token_type' has 3 elements");
  expect_vocabulary_refused([](F f) { f.flag("tokenizer.ggml.token_type", true); }, "is a flag");
  for (const uint32_t id : {2u, 1u << 31, UINT32_MAX - 1}) {
    expect_vocabulary_refused([&](F f) { f.u32("tokenizer.ggml.bos_token_id", id); },
                              str_cat("'tokenizer.ggml.bos_token_id' is ", id));
  }
  expect_vocabulary_refused(
      [](F f) { f.pair("tokenizer.ggml.eos_token_id", GgufType::kI32, raw<int32_t>(-2)); },
      "'tokenizer.ggml.eos_token_id' is -2; the vocabulary has ids 0 to 1");
  expect_vocabulary_refused(
      [](F f) { f.pair("tokenizer.ggml.eot_token_id", GgufType::kU64, raw(UINT64_MAX)); },
      "'tokenizer.ggml.eot_token_id' is 18446744073709551615");
  EXPECT_EQ(complaint(vocabulary([](F f) { f.u32("tokenizer.ggml.padding_token_id", 2); }).build()),
            "");  // common, harmless
  expect_vocabulary_refused([](F f) { f.u32("tokenizer.ggml.merges", 1); },
                            "expected an array of strings");
  expect_vocabulary_refused([](F f) { f.text("tokenizer.ggml.add_bos_token", "yes"); },
                            "'tokenizer.ggml.add_bos_token' is a string; expected a flag");
  expect_vocabulary_refused([](F f) { f.text("tokenizer.ggml.precompiled_charsmap", "x"); },
                            "expected an array of bytes");
  expect_refused(GgufBuilder().strings("tokenizer.ggml.tokens", {"a"}).build(),
                 "key 'tokenizer.ggml.model' is missing");
  expect_refused(
      GgufBuilder().text("tokenizer.ggml.model", "x").strings("tokenizer.ggml.tokens", {}).build(),
      "'tokenizer.ggml.tokens' has 0 elements");
}

TEST(HostileGguf, NumbersThatAreNone) {
  const std::string file = GgufBuilder()
                               .f32("nan", NAN)
                               .f32("infinite", INFINITY)
                               .array<float>("list", GgufType::kF32, {1, NAN})
                               .build();
  const Result<GgufContents> contents = read_gguf(file);
  ASSERT_TRUE(contents.ok()) << contents.message();
  const Metadata& m = contents.value().metadata;
  EXPECT_EQ(m.number("nan").message(), "key 'nan' is nan; expected a finite number");
  EXPECT_FALSE(m.number("infinite").ok());
  EXPECT_FALSE(m.numbers("list").ok());
  EXPECT_EQ(m.integer("nan").message(), "key 'nan' is a number; expected an integer");
  EXPECT_EQ(m.string("absent").message(), "key 'absent' is missing; expected a string");
}

}  // namespace
}  // namespace tinyvllm
