// Whatever was foreseen, posted, waited for or given up, in whatever order threads meet: what was
// posted is on the card when it is drained, each upload is followed once and in order, and nobody
// reads what is gone.
#include "device/cuda/uploader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <sys/mman.h>

#include "tests/device/uploader/stand_in_card.h"

namespace tinyvllm {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Tensors in a map that a read after its end would fault on, some of which have gaps between them
// on the card.
class File {
 public:
  explicit File(std::mt19937& random) {
    for (int count = 1 + static_cast<int>(random() % 50); count > 0; --count) {
      const size_t most = random() % 8 == 0 ? 20 * kMiB : kMiB / 2;
      const size_t bytes = 1 + random() % most;
      tensors_.push_back({bytes_, card_bytes_, bytes});
      bytes_ += bytes;
      card_bytes_ += bytes + (random() % 2 == 0 ? 256 : 0);
    }
    map_ = static_cast<char*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t at = 0; at + 8 <= bytes_; at += 8) {
      const uint64_t word = (at + 1) * 0x9E3779B97F4A7C15u;
      std::memcpy(map_ + at, &word, sizeof word);
    }
  }
  ~File() { munmap(map_, bytes_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  struct Tensor {
    size_t begin;
    size_t place;  // on the card
    size_t bytes;
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }
  size_t bytes() const { return bytes_; }
  size_t card_bytes() const { return card_bytes_; }
  const char* at(const Tensor& tensor) const { return map_ + tensor.begin; }

 private:
  std::vector<Tensor> tensors_;
  size_t bytes_ = 0;
  size_t card_bytes_ = 0;
  char* map_;
};

enum class Foreseen { kNothing, kAll, kSomeOthers, kSomeMissing, kMore };

class UploaderTest : public testing::TestWithParam<Foreseen> {
 protected:
  void SetUp() override {
    cudaStreamCreateWithFlags(&ops_, 0);
    uploader_ = std::make_unique<Uploader>(ops_);
  }
  void TearDown() override {
    uploader_.reset();
    cudaStreamDestroy(ops_);
  }

  void foresee(const File& file) {
    std::vector<Uploader::Source> order;
    for (const File::Tensor& tensor : file.tensors()) {
      if (GetParam() == Foreseen::kSomeMissing && random_() % 8 == 0) continue;
      order.push_back({file.at(tensor), tensor.bytes});
      if (GetParam() == Foreseen::kSomeOthers && random_() % 16 == 0) {
        order.push_back({file.at(tensor), 1 + random_() % tensor.bytes});
      }
    }
    if (GetParam() == Foreseen::kMore) order.push_back({file.at({}), file.bytes()});
    if (GetParam() != Foreseen::kNothing) uploader_->foresee(order);
    if (random_() % 2 == 0) pause(4000);
  }
  void pause(unsigned most_us) {
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % most_us));
  }
  Status post(const File& file, size_t i) {
    const File::Tensor& tensor = file.tensors()[i];
    return uploader_->post(card_.get() + tensor.place, card_.get(), file.at(tensor), tensor.bytes,
                           [this, i](bool) { followed_.push_back(i); });
  }
  void begin(const File& file) {
    card_ = std::make_unique<char[]>(file.card_bytes());
    followed_.clear();
  }
  // The first `count` tensors are there, and were followed.
  void expect_there(const File& file, size_t count) {
    ASSERT_EQ(followed_.size(), count);
    EXPECT_TRUE(std::is_sorted(followed_.begin(), followed_.end()));
    EXPECT_EQ(uploader_->unsent(), 0u);
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, 0);
    cudaEventRecord(event, ops_);
    cudaEventSynchronize(event);
    for (size_t i = 0; i < count; ++i) {
      const File::Tensor& tensor = file.tensors()[i];
      EXPECT_EQ(std::memcmp(card_.get() + tensor.place, file.at(tensor), tensor.bytes), 0)
          << "tensor " << i << " of " << file.tensors().size();
    }
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam()) + 1};
  cudaStream_t ops_ = nullptr;
  std::unique_ptr<Uploader> uploader_;
  std::unique_ptr<char[]> card_;
  std::vector<size_t> followed_;
};

TEST_P(UploaderTest, WhatIsPostedArrives) {
  for (int load = 0; load < 4; ++load) {
    const File file(random_);
    begin(file);
    foresee(file);
    for (size_t i = 0; i < file.tensors().size(); ++i) {
      ASSERT_TRUE(post(file, i).ok());
      if (random_() % 8 == 0) {
        ASSERT_TRUE(uploader_->drain(random_() % 6).ok());
      }
      if (random_() % 8 == 0) pause(1000);
    }
    ASSERT_TRUE(uploader_->drain().ok());
    expect_there(file, file.tensors().size());
    ASSERT_FALSE(HasFailure()) << "load " << load;
    if (load % 3 == 0) uploader_->rest();
  }
}

TEST_P(UploaderTest, ALoadMayBeGivenUpAnywhere) {
  for (int load = 0; load < 6; ++load) {
    const File file(random_);
    begin(file);
    foresee(file);
    const size_t count = random_() % (file.tensors().size() + 1);
    for (size_t i = 0; i < count; ++i) ASSERT_TRUE(post(file, i).ok());
    if (load % 2 == 0) uploader_->forget();
    ASSERT_TRUE(uploader_->drain().ok());
    if (load % 2 == 1) uploader_->forget();
    expect_there(file, count);
    ASSERT_FALSE(HasFailure()) << "load " << load;
  }
}

// A model that is refused before it has bound a weight: its file is unmapped at once.
TEST_P(UploaderTest, WhatWasForgottenIsNotRead) {
  for (int load = 0; load < 15; ++load) {
    const File file(random_);
    foresee(file);
    pause(500);
    uploader_->forget();
  }
}

TEST_P(UploaderTest, ACopyThatIsRefusedIsHeardOf) {
  const File file(random_);
  begin(file);
  foresee(file);
  refuse_copy_after(static_cast<int>(random_() % 3));
  Status posted;
  for (size_t i = 0; posted.ok() && i < file.tensors().size(); ++i) posted = post(file, i);
  const Status drained = uploader_->drain();
  refuse_copy_after(-1);
  EXPECT_FALSE(posted.ok() && drained.ok());
}

std::string name_of(const testing::TestParamInfo<Foreseen>& info) {
  const char* names[] = {"Nothing", "All", "SomeOthers", "SomeMissing", "More"};
  return names[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Foreseen, UploaderTest,
                         testing::Values(Foreseen::kNothing, Foreseen::kAll, Foreseen::kSomeOthers,
                                         Foreseen::kSomeMissing, Foreseen::kMore),
                         name_of);

}  // namespace
}  // namespace tinyvllm
