// Files that we write, read back; and that a file which was not completed leaves no trace.
#include "io/gguf_writer.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <numeric>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gguf_builder.h"
#include "io/gguf_reader.h"
#include "io/model_files.h"
#include "temp_folder.h"

namespace tinyvllm {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

size_t entries(const TempFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

GgufPairs every_kind_of_pair() {
  GgufPairs pairs;
  pairs.text("general.architecture", "llama");
  pairs.u32("count", 1);
  pairs.f32("ratio", 0.25f);
  pairs.flag("flag", true);
  pairs.texts("words", std::vector<std::string>{"a", "", "é"});
  pairs.i32s("numbers", std::vector<int32_t>{-1, 2});
  pairs.f32s("scores", std::vector<float>{-0.5f});
  pairs.flags("flags", {true, false});
  pairs.u32("gone", 1);
  pairs.remove("gone");
  pairs.u32("count", 7);  // the last word counts
  return pairs;
}

TEST(GgufWriter, WhatIsWrittenIsReadBack) {
  const TempFolder folder;
  const std::string path = folder.path("a.gguf");
  std::vector<uint8_t> bytes(36 + 8 + 40);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  const std::vector<GgufTensor> tensors = {{"odd", DType::kQ4_0, {2, 32}},
                                           {"small", DType::kF32, {2}},
                                           {"cube", DType::kQ4_1, {2, 1, 32}}};
  auto writer = GgufWriter::create(path, every_kind_of_pair(), tensors);
  ASSERT_TRUE(writer.ok()) << writer.message();
  ASSERT_TRUE(writer.value()->write(bytes.data(), 7).ok());
  ASSERT_TRUE(writer.value()->write(bytes.data() + 7, 29).ok());
  ASSERT_TRUE(writer.value()->write(bytes.data() + 36, 8).ok());
  ASSERT_TRUE(writer.value()->write(bytes.data() + 44, 40).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(writer.value()->finish().ok());
  EXPECT_EQ(entries(folder), 1u);

  const std::string file = read_all(path);
  EXPECT_EQ(file.size(), writer.value()->total_bytes());
  const auto contents = read_gguf(file);
  ASSERT_TRUE(contents.ok()) << contents.message();
  ASSERT_EQ(contents.value().tensors.size(), tensors.size());
  const uint8_t* expected = bytes.data();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const WeightTensor& found = contents.value().tensors[i];
    EXPECT_EQ(found.name, tensors[i].name);
    EXPECT_EQ(found.view.dtype, tensors[i].dtype);
    EXPECT_EQ(found.view.shape, tensors[i].shape);
    EXPECT_EQ(found.file_offset % 32, 0u);
    EXPECT_EQ(std::memcmp(found.view.data, expected, found.view.bytes()), 0) << found.name;
    expected += found.view.bytes();
  }
  const Metadata& m = contents.value().metadata;
  EXPECT_EQ(m.integer("count").value(), 7);
  EXPECT_EQ(m.number("ratio").value(), 0.25);
  EXPECT_TRUE(m.boolean("flag").value());
  EXPECT_EQ(m.strings("words").value(), (std::vector<std::string_view>{"a", "", "é"}));
  EXPECT_EQ(m.integers("numbers").value(), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(m.numbers("scores").value(), (std::vector<double>{-0.5}));
  EXPECT_TRUE(m.has("flags"));
  EXPECT_FALSE(m.has("gone"));
}

TEST(GgufWriter, MetadataOfAnotherFileIsTakenOverByteForByte) {
  const TempFolder folder;
  GgufBuilder original = tiny_gguf();
  original.pair("u8", GgufType::kU8, raw<uint8_t>(200)).array<int16_t>("s", GgufType::kI16, {-1});
  const std::string path = folder.write("a.gguf", original.build());
  const auto files = ModelFiles::open(path);
  ASSERT_TRUE(files.ok()) << files.message();
  GgufPairs pairs;
  for (const GgufPair& pair : files.value()->gguf_pairs()) pairs.copy(pair);
  std::vector<GgufTensor> tensors;
  for (const WeightTensor& t : files.value()->weights().tensors()) {
    tensors.push_back({t.name, t.view.dtype, t.view.shape});
  }
  const GgufLayout layout = lay_out_gguf(pairs, tensors);
  EXPECT_EQ(layout.header, original.build().substr(0, layout.header.size()));
}

TEST(NewFile, LeavesNothingWhenItIsNotCommitted) {
  const TempFolder folder;
  const std::string path = folder.write("a", "old");
  {
    auto file = NewFile::create(path);
    ASSERT_TRUE(file.ok()) << file.message();
    ASSERT_TRUE(file.value()->write("new", 3).ok());
  }
  EXPECT_EQ(read_all(path), "old");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(NewFile, AKilledProcessLeavesTheOldFile) {
  const TempFolder folder;
  const std::string path = folder.write("a", "old");
  const pid_t child = fork();
  if (child == 0) {
    auto file = NewFile::create(path);
    if (file.ok() && file.value()->write("new", 3).ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_all(path), "old");
}

TEST(NewFile, AFullDiskIsAnErrorAndLeavesTheOldFile) {
  const TempFolder folder;
  const std::string path = folder.write("a", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    auto file = NewFile::create(path);
    EXPECT_TRUE(file.ok());
    EXPECT_FALSE(file.value()->reserve(uint64_t{1} << 60).ok());
    const std::string data(8192, 'x');
    const Status status = file.value()->write(data.data(), data.size());
    EXPECT_NE(status.message().find(path + ": cannot write"), std::string::npos)
        << status.message();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_all(path), "old");
  EXPECT_EQ(entries(folder), 1u);
}

TEST(NewFile, RefusesWhatIsNoFile) {
  const TempFolder folder;
  EXPECT_FALSE(NewFile::create("/dev/null").ok());
  EXPECT_FALSE(NewFile::create(folder.path()).ok());
  EXPECT_FALSE(NewFile::create(folder.path("missing/a")).ok());
}

}  // namespace
}  // namespace tinyvllm
