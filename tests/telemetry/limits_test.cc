// The cache of measured limits: what was stored comes back for the same machine alone, and nothing
// that can happen to a file is more than a miss.
#include "telemetry/limits.h"

#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tinyvllm {
namespace {

class LimitsCache : public testing::Test {
 protected:
  LimitsCache()
      : folder_(std::filesystem::temp_directory_path() /
                ("tinyvllm_limits_" + std::to_string(getpid()))) {}
  ~LimitsCache() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path only_file() const {
    return std::filesystem::directory_iterator(folder_ / "limits")->path();
  }

  const std::filesystem::path folder_;
  const MachineKey key_{"AMD EPYC/9R14", 2, "avx2"};
  const MachineLimits limits_{25.5e9, 180.25e9, 1e12};
};

TEST_F(LimitsCache, GivesBackWhatWasStoredForThisMachineAlone) {
  EXPECT_FALSE(load_limits(folder_, key_));
  ASSERT_TRUE(store_limits(folder_, key_, limits_));
  const auto loaded = load_limits(folder_, key_);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->read_bytes_per_s, 25.5e9);
  EXPECT_EQ(loaded->flops_per_s, 180.25e9);
  EXPECT_EQ(loaded->int8_ops_per_s, 1e12);
  EXPECT_FALSE(load_limits(folder_, {key_.cpu, 4, key_.isa}));
  EXPECT_FALSE(load_limits(folder_, {key_.cpu, 2, "baseline"}));
  EXPECT_FALSE(load_limits(folder_, {"AMD EPYC 9R14", 2, "avx2"}));  // same file name
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "limits"), {}), 1);
}

TEST_F(LimitsCache, ACardHasTwoNumbersMoreThatOlderFilesDoNot) {
  MachineLimits card = limits_;
  card.copy_bytes_per_s = 1.75e12;
  card.upload_bytes_per_s = 55e9;
  ASSERT_TRUE(store_limits(folder_, key_, card));
  EXPECT_EQ(load_limits(folder_, key_)->copy_bytes_per_s, 1.75e12);
  EXPECT_EQ(load_limits(folder_, key_)->upload_bytes_per_s, 55e9);
  std::ofstream(only_file()) << R"({"cpu":"AMD EPYC/9R14","threads":2,"isa":"avx2",
      "read_bytes_per_s":25.5e9,"flops_per_s":180.25e9,"int8_ops_per_s":1e12})";
  const auto old = load_limits(folder_, key_);
  ASSERT_TRUE(old);
  EXPECT_EQ(old->read_bytes_per_s, 25.5e9);
  EXPECT_EQ(old->copy_bytes_per_s, 0);
  EXPECT_EQ(old->upload_bytes_per_s, 0);
}

TEST_F(LimitsCache, BrokenFilesAreMisses) {
  ASSERT_TRUE(store_limits(folder_, key_, limits_));
  for (const char* content :
       {"", "{", "[]", "17", R"({"cpu":"AMD EPYC/9R14"})
    ",
    R"({"cpu":"AMD EPYC/9R14",
        "read_bytes_per_s" : 0, "flops_per_s" : 1e11, "int8_ops_per_s" : 1e12
})",
        R"({"cpu":"AMD EPYC/9R14","read_bytes_per_s":"x","flops_per_s":1e11,"int8_ops_per_s":1e12
})"}) {
    std::ofstream(only_file()) << content;
    EXPECT_FALSE(load_limits(folder_, key_)) << content;
  }
  ASSERT_TRUE(store_limits(folder_, key_, limits_));
  EXPECT_TRUE(load_limits(folder_, key_));
}

TEST_F(LimitsCache, AnUnwritableFolderIsNoError) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "limits") << "a file where the folder should be";
  EXPECT_FALSE(store_limits(folder_, key_, limits_));
  EXPECT_FALSE(load_limits(folder_, key_));
}

TEST(CpuModel, NamesThisMachine) {
  EXPECT_NE(cpu_model().find_first_not_of("CPU ()"), std::string::npos);
}

}  // namespace
}  // namespace tinyvllm
