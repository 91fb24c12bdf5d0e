// Paths, shards and configurations that lie, through the front door.
#include <cmath>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf_builder.h"
#include "io/model_files.h"
#include "io/model_summary.h"
#include "safetensors_builder.h"
#include "temp_folder.h"

namespace tinyvllm {
namespace {

void expect_refused(const std::string& path, const std::string& words) {
  const auto files = ModelFiles::open(path);
  ASSERT_FALSE(files.ok()) << path << ", expected: " << words;
  EXPECT_NE(files.message().find(words), std::string::npos)
      << "expected: " << words << "\nfound:    " << files.message();
}

TEST(HostileFiles, PathsThatAreNotFiles) {
  const TempFolder folder;
  expect_refused(folder.path("absent.gguf"), "cannot open: No such file or directory");
  expect_refused(folder.path(), "a folder without config.json");
  expect_refused("/dev/null", "is a device; expected a regular file");
  ASSERT_EQ(::mkfifo(folder.path("pipe.gguf").c_str(), 0600), 0);
  expect_refused(folder.path("pipe.gguf"), "is a pipe; expected a regular file");  // and no waiting
  ASSERT_EQ(::symlink("loop.gguf", folder.path("loop.gguf").c_str()), 0);
  expect_refused(folder.path("loop.gguf"), "cannot open: Too many levels of symbolic links");
  expect_refused(folder.write("empty.gguf", ""), "magic at offset 0");
  expect_refused(folder.path("empty.gguf/x"), "cannot open: Not a directory");
  expect_refused("", "cannot open");
  const std::string unreadable = folder.write("secret.gguf", tiny_gguf().build());
  ASSERT_EQ(::chmod(unreadable.c_str(), 0), 0);
  if (::geteuid() != 0) expect_refused(unreadable, "cannot open: Permission denied");
}

// A sparse file can claim terabytes and costs nothing: its zeros must not be scanned or believed.
TEST(HostileFiles, SparseFilesOfATerabyte) {
  const TempFolder folder;
  const auto grow = [](const std::string& path) {
    ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  };
  const std::string many = folder.write(
      "many.gguf",
      GgufBuilder().build().replace(8, 16, raw(uint64_t{1} << 34) + raw(uint64_t{1} << 34)));
  grow(many);
  expect_refused(many, "metadata count is 17179869184");
  GgufBuilder strings;
  strings.pair("k", GgufType::kArray, raw(uint32_t{8}) + raw(uint64_t{1} << 36));
  grow(folder.write("strings.gguf", strings.build()));
  expect_refused(folder.path("strings.gguf"), "left in the 256 MiB that metadata may take");
  GgufBuilder text;
  text.pair("k", GgufType::kString, raw(uint64_t{1} << 39));
  grow(folder.write("text.gguf", text.build()));
  expect_refused(folder.path("text.gguf"), "value of key 'k' at offset 37: length 549755813888");

  const TempFolder hf;
  hf.write("config.json", "{}");
  grow(hf.write("model.safetensors", raw(uint64_t{1} << 39)));
  expect_refused(hf.path(), "offset 0: header length is 549755813888; expected at most 100000000");
  grow(hf.path("config.json"));
  expect_refused(hf.path(), "bytes of JSON; expected at most");
}

// Parts of a split GGUF: part `number` of `count`, saying that it is `no`.
std::string part(uint32_t no, uint32_t count, uint32_t tensors, const std::string& name) {
  GgufBuilder file;
  file.u32("split.no", no).u32("split.count", count).u32("split.tensors.count", tensors);
  file.text("general.architecture", "llama").tensor(name, {8}, DType::kF32, 32);
  return file.build();
}

TEST(HostileFiles, PartsOfASplitModel) {
  const TempFolder folder;
  const std::string first = folder.write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
  expect_refused(first, "part 2 of 2: ");  // missing
  const std::string second = folder.write("m-00002-of-00002.gguf", part(1, 2, 2, "b"));
  for (const std::string& path : {first, second}) {
    const auto files = ModelFiles::open(path);
    ASSERT_TRUE(files.ok()) << files.message();
    EXPECT_EQ(files.value()->weights().find("b")->file, 1);
  }
  folder.write("m-00002-of-00002.gguf", part(0, 2, 2, "b"));  // says that it is the first
  expect_refused(first, "key 'split.no' is 0; expected 1 in part 2 of 2");
  std::filesystem::remove(second);  // part 2 leads back to part 1
  std::filesystem::create_symlink(first, second);
  expect_refused(first, "key 'split.no' is 0; expected 1");
  std::filesystem::remove(second);
  folder.write("m-00002-of-00002.gguf", part(1, 3, 2, "b"));
  expect_refused(first, "key 'split.count' is 3; expected 2");
  folder.write("m-00002-of-00002.gguf", part(1, 2, 2, "a"));
  expect_refused(first, "tensor 'a' is in another part already");
  folder.write("m-00002-of-00002.gguf", GgufBuilder().build());
  expect_refused(first, "key 'split.no' is missing");
  folder.write("m-00001-of-00002.gguf", part(0, 2, 5, "a"));
  folder.write("m-00002-of-00002.gguf", part(1, 2, 5, "b"));
  expect_refused(first, "hold 2 tensors; expected the 5 of key 'split.tensors.count'");
  expect_refused(folder.write("lonely.gguf", part(0, 2, 2, "a")),
                 "its name must end like -00001-of-00002.gguf");
  expect_refused(folder.write("m-00001-of-00003.gguf", part(0, 2, 2, "a")), "its name must end");
  expect_refused(folder.write("m-00001-of-65535.gguf", part(0, 65535, 2, "a")), "part 2 of 65535");
  expect_refused(folder.write("m-0001x-of-00002.gguf", part(0, 2, 2, "a")), "its name must end");
}

constexpr char kOne[] = "model-00001-of-00002.safetensors";
constexpr char kTwo[] = "model-00002-of-00002.safetensors";

std::string index_of(const std::string& a, const std::string& b, const std::string& c) {
  return str_cat(R"({"weight_map":{"a":")", a, R"(","b":")", b, R"(","c":")", c, R"("}})");
}

TEST(HostileFiles, ShardsOfAFolder) {
  const TempFolder folder;
  const std::string other =
      safetensors_file("{" + safetensors_entry("c", "F32", "[1,2]", 0, 8) + "}", 8);
  folder.write("config.json", "{}");
  folder.write(kOne, tiny_safetensors());
  folder.write("model.safetensors.index.json", index_of(kOne, kOne, kTwo));
  expect_refused(folder.path(), "cannot open: No such file");  // missing
  folder.write(kTwo, other);
  EXPECT_TRUE(ModelFiles::open(folder.path()).ok());

  const std::string surplus = folder.write("model-00003-of-00002.safetensors", other);
  expect_refused(folder.path(), "a shard that model.safetensors.index.json does not list");
  std::filesystem::remove(surplus);

  folder.write("model.safetensors.index.json", index_of(kOne, kTwo, kTwo));
  expect_refused(folder.path(), str_cat("tensor 'b' should be in ", kTwo));
  folder.write("model.safetensors.index.json", str_cat(R"({"weight_map":{"a":")", kOne, R"("}})"));
  expect_refused(folder.path(), "tensor 'b' should not exist according to");
  folder.write(
      "model.safetensors.index.json",
      str_cat(R"({"weight_map":{"a":")", kOne, R"(","b":")", kOne, R"(","z":")", kOne, R"("}})"));
  std::filesystem::remove(folder.path(kTwo));
  expect_refused(folder.path(), str_cat("tensor 'z' should be in ", kOne, ", which does not"));

  folder.write("model.safetensors.index.json", index_of(kOne, kOne, kTwo));
  std::filesystem::create_symlink(kOne, folder.path(kTwo));  // the second leads back to the first
  expect_refused(folder.path(), "according to model.safetensors.index.json");
}

TEST(HostileFiles, FoldersWithoutWeights) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  expect_refused(folder.path(), "expected weights in model.safetensors or in shards listed in");
  folder.write("pytorch_model.bin", "");
  expect_refused(folder.path(), "pytorch_model.bin is not read: convert it to safetensors");
  std::filesystem::remove(folder.path("pytorch_model.bin"));
  folder.write("x.gguf", "");
  expect_refused(folder.path(), "open the file x.gguf instead");
  std::filesystem::create_directory(folder.path("model.safetensors"));
  expect_refused(folder.path(), "model.safetensors is a folder; expected a regular file");
}

TEST(HostileFiles, ConfigurationsThatLie) {
  const TempFolder folder;
  folder.write("model.safetensors", tiny_safetensors());
  const auto expect_json_refused = [&](const char* file, const std::string& json,
                                       const std::string& words) {
    folder.write("config.json", "{}");
    folder.write(file, json);
    expect_refused(folder.path(), words);
    std::filesystem::remove(folder.path(file));
  };
  expect_json_refused("config.json", "", "config.json: not valid JSON");
  expect_json_refused("config.json", "[1]", "expected a JSON object, found a list");
  expect_json_refused("config.json", "{\"a\":1,}", "not valid JSON");
  expect_json_refused("config.json", "{\"a\":\"\xC3\"}", "not valid JSON");
  expect_json_refused("config.json", "{\"eos_token_id\": NaN}", "is a string; expected an integer");
  expect_json_refused("config.json", "{\"a\": Nan}", "not valid JSON");
  expect_json_refused("config.json", R"({"a":{"b":1},"a.b":2})", "key 'a.b' appears twice");
  expect_json_refused("config.json", R"({"a":1,"a":2})", "key 'a' appears twice");
  expect_json_refused("config.json", std::string(100, '[') + std::string(100, ']'), "nested");
  expect_json_refused("config.json", "{\"" + std::string(300, 'k') + "\":1}", "300 bytes long");
  expect_json_refused("config.json", R"({"eos_token_id":"</s>"})",
                      "config.json: key 'eos_token_id' is a string; expected an integer");
  expect_json_refused("config.json", R"({"eos_token_id":[1,-5]})", "holds -5; expected token ids");
  expect_json_refused("config.json", R"({"eos_token_id":[1,4294967296]})", "holds 4294967296");
  expect_json_refused("config.json", R"({"eos_token_id":1.5})", "is a number; expected an integer");
  const char* generation = "generation_config.json";
  expect_json_refused(generation, R"({"temperature":"hot"})", "key 'temperature' is a string");
  expect_json_refused(generation, R"({"top_k":2.5})",
                      "key 'top_k' is a number; expected an integer");
  expect_json_refused(generation, R"({"top_p":[1]})", "key 'top_p' is an array of integers");
  expect_json_refused(generation, R"({"top_k":18446744073709551615})", "key 'top_k' is 1844674407");
  expect_json_refused(generation, "{", "generation_config.json: not valid JSON");
  expect_json_refused("chat_template.json", "{}", "key 'chat_template' is missing");
}

// The network that a file describes has to be possible.
TEST(HostileFiles, NetworksThatCannotBe) {
  const TempFolder folder;
  const auto expect_summary_refused = [&](GgufBuilder file, const std::string& words) {
    const auto files = ModelFiles::open(folder.write("m.gguf", file.build()));
    ASSERT_TRUE(files.ok()) << files.message();
    const auto summary = summarize(*files.value());
    ASSERT_FALSE(summary.ok()) << words;
    EXPECT_NE(summary.message().find(words), std::string::npos) << summary.message();
  };
  const auto llama = [](uint32_t layers) {
    return GgufBuilder().text("general.architecture", "llama").u32("llama.block_count", layers);
  };
  const auto heads = [&](uint32_t count, uint32_t kv) {
    return llama(2)
        .u32("llama.embedding_length", 64)
        .u32("llama.attention.head_count", count)
        .u32("llama.attention.head_count_kv", kv);
  };
  expect_summary_refused(GgufBuilder(), "key 'general.architecture' is missing");
  expect_summary_refused(GgufBuilder().u32("general.architecture", 1), "expected a string");
  expect_summary_refused(heads(5, 5), "a width of 64 does not divide into 5 heads");
  expect_summary_refused(heads(8, 3), "layer 0: 8 heads do not divide among 3 KV heads");
  expect_summary_refused(llama(UINT32_MAX), "key 'llama.block_count' is 4294967295");
  expect_summary_refused(llama(1 << 30), "the file says 1073741824 layers");
  expect_summary_refused(llama(2).f32("llama.context_length", 2048), "is a number");
  expect_summary_refused(llama(2).f32("llama.rope.freq_base", NAN), "expected a finite number");
  expect_summary_refused(
      llama(2).array<int32_t>("llama.attention.head_count", GgufType::kI32, {1, 2, 3}),
      "has 3 elements; expected one for each of the 2 layers");
  expect_summary_refused(
      llama(2).array<int32_t>("llama.attention.head_count", GgufType::kI32, {1, -2}),
      "key 'llama.attention.head_count' is -2");
  const uint32_t most = INT32_MAX;
  expect_summary_refused(heads(most, most)
                             .u32("llama.attention.key_length", most)
                             .u32("llama.attention.value_length", most),
                         "more than 2^64 bytes");
}

}  // namespace
}  // namespace tinyvllm
