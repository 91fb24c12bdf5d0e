#include "io/touch_ahead.h"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "io/mapped_file.h"
#include "temp_folder.h"

namespace tinyvllm {
namespace {

constexpr uint64_t kBytes = uint64_t{16} << 20;  // of a tensor
constexpr uint64_t kAround = uint64_t{64} << 10;
const uint64_t kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

// Two tensors. The first was written a moment ago, so memory has it; the second is a hole, which no
// page of memory stands for before somebody reads it.
class TouchAheadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = folder_.write("weights", std::string(kBytes, 'w'));
    std::filesystem::resize_file(path, 2 * kBytes);
    Result<std::unique_ptr<MappedFile>> file = MappedFile::open(path);
    ASSERT_TRUE(file.ok()) << file.message();
    file_ = std::move(file).value();
    const Shape shape{static_cast<int64_t>(kBytes / sizeof(float))};
    weights_.insert({"written", {begin(), DType::kF32, shape}});
    weights_.insert({"hole", {begin() + kBytes, DType::kF32, shape}});
  }

  const char* begin() const { return file_->bytes().data(); }

  // Parts of the first that this process's page table has a page of.
  uint64_t parts_in_table() const {
    const int table = open("/proc/self/pagemap", O_RDONLY);
    std::vector<uint64_t> pages(kBytes / kPage);
    const auto offset = reinterpret_cast<uintptr_t>(begin()) / kPage * sizeof(uint64_t);
    const size_t size = pages.size() * sizeof(uint64_t);
    EXPECT_EQ(pread(table, pages.data(), size, static_cast<off_t>(offset)), size);
    close(table);
    const auto is_there = [](uint64_t page) { return (page >> 63) != 0; };
    const auto step = static_cast<ptrdiff_t>(kAround / kPage);
    uint64_t parts = 0;
    for (auto part = pages.begin(); part != pages.end(); part += step) {
      parts += std::any_of(part, part + step, is_there) ? 1 : 0;
    }
    return parts;
  }

  uint64_t hole_pages_in_memory() const {
    std::vector<unsigned char> pages(kBytes / kPage);
    EXPECT_EQ(mincore(const_cast<char*>(begin()) + kBytes, kBytes, pages.data()), 0);
    uint64_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return count;
  }

  TempFolder folder_;
  std::unique_ptr<MappedFile> file_;
  WeightSource weights_;
};

TEST_F(TouchAheadTest, TheTableHasWhatIsInMemoryAndNothingIsReadFromTheDisk) {
  ASSERT_EQ(parts_in_table(), 0u);
  const uint64_t before = hole_pages_in_memory();
  const TouchAhead touching(weights_);
  for (int tries = 0; tries < 1000 && parts_in_table() < kBytes / kAround; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(parts_in_table(), kBytes / kAround);
  EXPECT_EQ(hole_pages_in_memory(), before);
}

// A thread that went on would read where nothing is mapped.
TEST_F(TouchAheadTest, IsDoneWithTheFileWhenItIsGone) {
  for (int i = 0; i < 20; ++i) {
    { const TouchAhead touching(weights_); }
    const uint64_t parts = parts_in_table();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(parts_in_table(), parts);
    madvise(const_cast<char*>(begin()), kBytes, MADV_DONTNEED);  // out of the table again
  }
  file_.reset();
}

}  // namespace
}  // namespace tinyvllm
