// Memory of the CPU device: zeroed, aligned, apart, and given back.
#include "device/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tinyvllm {
namespace {

size_t resident_bytes() {
  long pages = 0;
  long resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<size_t>(resident) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(CpuDevice, PiecesAreZeroedAlignedAndApart) {
  CpuDevice device(Isa::kBaseline);
  std::vector<Buffer> buffers;
  for (const size_t bytes : {1, 63, 64, 65, 5000, 3 << 20, 300 << 20, 7}) {
    buffers.push_back(device.allocate(bytes, "a test").value());
    auto* data = static_cast<char*>(buffers.back().data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    EXPECT_TRUE(
        std::all_of(data, data + std::min<size_t>(bytes, 1 << 20), [](char c) { return c == 0; }));
    std::memset(data, 'x', std::min<size_t>(bytes, 4 << 20));  // the next one must not see this
    data[bytes - 1] = 'x';
  }
  for (const Buffer& buffer : buffers) {
    EXPECT_EQ(static_cast<char*>(buffer.data())[buffer.bytes() - 1], 'x');
  }
}

TEST(CpuDevice, FreedPiecesGiveTheirMemoryBackWhileNeighboursLive) {
  CpuDevice device(Isa::kBaseline);
  const Buffer before = device.allocate(100, "a test").value();
  constexpr size_t kBytes = size_t{64} << 20;
  Buffer large = device.allocate(kBytes, "a test").value();
  const Buffer after = device.allocate(100, "a test").value();
  std::memset(large.data(), 1, kBytes);
  std::memset(before.data(), 2, 100);
  std::memset(after.data(), 3, 100);
  const size_t full = resident_bytes();
  large = Buffer();
  EXPECT_LT(resident_bytes() + kBytes / 2, full);
  EXPECT_EQ(static_cast<char*>(before.data())[99], 2);
  EXPECT_EQ(static_cast<char*>(after.data())[0], 3);
}

TEST(CpuDevice, WhatCannotBeHadIsAnError) {
  CpuDevice device(Isa::kBaseline);
  const Result<Buffer> buffer = device.allocate(size_t{1} << 60, "the moon");
  ASSERT_FALSE(buffer.ok());
  EXPECT_NE(buffer.message().find("the moon"), std::string::npos);
}

}  // namespace
}  // namespace tinyvllm
