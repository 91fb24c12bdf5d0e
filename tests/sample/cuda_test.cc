// The card chooses the CPU's tokens, with the CPU's logprobs to the bit.
#include <gtest/gtest.h>

#include "device/cuda/cuda_device.h"
#include "sample/block/pack.h"
#include "sample/cuda/sample_rows.h"
#include "sample/cuda/tokens.h"
#include "tests/sample/batch.h"

namespace tinyvllm {
namespace {

using block_sampler::DeviceRow;
using block_sampler::PackedRows;
using block_sampler::Scores;

constexpr float kInf = std::numeric_limits<float>::infinity();

class CudaSampler : public testing::Test {
 protected:
  void SetUp() override {
    auto device = CudaDevice::create({.separate_buffers = true});
    if (!device.ok()) GTEST_SKIP() << device.message();
    device_ = std::move(device.value());
  }

  std::vector<SampleOutput> sample_on_card(const SampleBatch& batch) {
    const size_t count = batch.rows.size();
    const size_t row_bytes = static_cast<size_t>(batch.stride) * sizeof(float);
    const Buffer logits =
        device_->allocate(static_cast<size_t>(batch.logit_rows) * row_bytes, "logits").value();
    const Buffer scratch =
        device_
            ->allocate(block_sampler::scratch_bytes(static_cast<int64_t>(count), batch.width),
                       "scratch")
            .value();
    const Buffer tokens = device_->allocate(count * sizeof(int32_t), "tokens").value();
    const Buffer scores = device_->allocate(count * sizeof(Scores), "scores").value();
    EXPECT_TRUE(device_->upload(logits.data(), batch.logits.data(), logits.bytes()).ok());
    // What is left over from earlier steps must not matter.
    const std::vector<char> garbage(scratch.bytes(), '\xA5');
    EXPECT_TRUE(device_->upload(scratch.data(), garbage.data(), garbage.size()).ok());

    const AheadOfTokens ahead = ahead_of_tokens(batch);
    const size_t previous_bytes = ahead.previous.size() * sizeof(int32_t);
    const Buffer previous = device_->allocate(previous_bytes, "tokens").value();
    EXPECT_TRUE(device_->upload(previous.data(), ahead.previous.data(), previous_bytes).ok());
    packed_.pack(ahead.rows, batch.width);
    const auto* rows = static_cast<const DeviceRow*>(
        device_->stage(StageSlot::kSampling, packed_.data(), packed_.bytes()).value());
    cuda_sampler::sample_rows(
        *device_, static_cast<const float*>(logits.data()), batch.stride, batch.width, rows,
        static_cast<int64_t>(count), static_cast<const int32_t*>(previous.data()), scratch.data(),
        static_cast<int32_t*>(tokens.data()),
        packed_.wants_scores() ? static_cast<Scores*>(scores.data()) : nullptr);
    std::vector<int32_t> chosen(count);
    std::vector<Scores> scored(count);
    Status done = device_->download(chosen.data(), tokens.data(), tokens.bytes());
    EXPECT_TRUE(done.ok()) << done.message();
    done = device_->download(scored.data(), scores.data(), scores.bytes());
    EXPECT_TRUE(done.ok()) << done.message();
    std::vector<SampleOutput> out;
    for (size_t i = 0; i < count; ++i) out.push_back(unpack(batch.rows[i], chosen[i], &scored[i]));
    return out;
  }

  // Every row's largest, of rows as they lie or of those named.
  std::vector<int32_t> choose_largest(const SampleBatch& batch, const std::vector<int32_t>* which) {
    Tensor tensor = batch.tensor();
    const Buffer logits = device_->allocate(batch.logits.size() * sizeof(float), "logits").value();
    EXPECT_TRUE(device_->upload(logits.data(), batch.logits.data(), logits.bytes()).ok());
    tensor.data = logits.data();
    const void* rows = nullptr;
    if (which != nullptr) {
      rows = device_->stage(StageSlot::kSampling, which->data(), which->size() * sizeof(int32_t))
                 .value();
    }
    std::vector<int32_t> chosen(which == nullptr ? static_cast<size_t>(batch.logit_rows)
                                                 : which->size());
    const auto count = static_cast<int>(chosen.size());
    const auto tokens = cuda_sampler::Tokens::create(*device_, count).value();
    tokens->choose_largest(tensor, static_cast<const int32_t*>(rows), count);
    const Scores* scores = nullptr;
    EXPECT_TRUE(tokens->collect(chosen, &scores).ok());
    EXPECT_EQ(scores, nullptr);
    return chosen;
  }

  void expect_agreement(uint32_t seed, int vocabulary, size_t rows) {
    const SampleBatch batch = random_batch(seed, vocabulary, rows);
    expect_same(batch, sample_on_card(batch));
  }

  std::unique_ptr<CudaDevice> device_;
  PackedRows packed_;
};

TEST_F(CudaSampler, SmallVocabularies) {
  for (const int vocabulary : {1, 2, 3, 7, 31, 32, 33, 100, 255, 257}) {
    expect_agreement(static_cast<uint32_t>(vocabulary), vocabulary, 500);
    if (HasFailure()) return;
  }
}

TEST_F(CudaSampler, VocabulariesAroundTheBlocksSizes) {
  for (const int vocabulary : {1023, 1024, 1025, 2047, 2048, 2049, 8191, 8192, 8193, 20011}) {
    expect_agreement(static_cast<uint32_t>(vocabulary), vocabulary, 256);
    if (HasFailure()) return;
  }
}

TEST_F(CudaSampler, LargeVocabularies) {
  for (const int vocabulary : {32000, 128256, 151936, 262144}) {
    expect_agreement(static_cast<uint32_t>(vocabulary), vocabulary, 64);
    if (HasFailure()) return;
  }
}

TEST_F(CudaSampler, TheLargestBatch) { expect_agreement(9, 50257, 256); }

TEST_F(CudaSampler, RowsThatAreNotNumbersAndRowsWithNothingAllowed) {
  constexpr int kWidth = 5000;
  SampleBatch batch = random_batch(3, kWidth, 60);
  for (int64_t i = 0; i < batch.logit_rows; ++i) {
    float* row = batch.logits.data() + i * batch.stride;
    std::fill_n(row, kWidth, i % 5 == 0 ? -kInf : 1.0f);
    if (i % 5 == 1) row[i * 97 % kWidth] = NAN;
    if (i % 5 == 2) row[i * 97 % kWidth] = kInf;
    if (i % 5 == 3) row[i * 97 % kWidth] = -kInf;
  }
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    if (i % 3 == 0) batch.params[i].allowed_token_ids = {7};
    if (i % 6 == 0) batch.params[i].bad_words_token_ids = {{7}};
  }
  expect_same(batch, sample_on_card(batch));
}

// The short way for rows that want no more than the largest: what sampling at temperature 0 says.
TEST_F(CudaSampler, TheLargestOfEachRow) {
  for (const int width : {1, 31, 1024, 1025, 5000, 151936}) {
    SampleBatch batch = random_batch(static_cast<uint32_t>(width), width, 80);
    const auto row = [&](int64_t i) { return batch.logits.data() + i * batch.stride; };
    row(0)[width / 2] = NAN;
    row(1)[width / 3] = kInf;
    std::fill_n(row(2), width, -kInf);
    std::fill_n(row(3), width, -kInf);
    row(3)[width - 1] = -1e30f;
    std::fill_n(row(4), width, -2.0f);             // all equal
    row(5)[width - 1] = row(5)[width / 2] = 1e4f;  // two
    std::vector<int32_t> which;
    for (int64_t i = batch.logit_rows - 1; i >= 0; --i) which.push_back(static_cast<int32_t>(i));
    which.push_back(4);  // again
    SamplingParams greedy;
    greedy.temperature = 0;
    batch.rows.clear();
    for (const int32_t i : which) {
      batch.rows.push_back({});
      batch.rows.back().params = &greedy;
      batch.rows.back().logit_row = i;
    }
    const std::vector<SampleOutput> expected = sample_on_cpu(batch);
    const std::vector<int32_t> in_order = choose_largest(batch, nullptr);
    const std::vector<int32_t> named = choose_largest(batch, &which);
    for (size_t i = 0; i < which.size(); ++i) {
      const auto at = static_cast<size_t>(which[i]);
      EXPECT_EQ(in_order[at], expected[i].token) << "row " << at << " of " << width;
      EXPECT_EQ(named[i], expected[i].token) << "row " << at << " of " << width;
    }
    EXPECT_EQ(in_order[0], kNotNumbers);
    EXPECT_EQ(in_order[1], kNotNumbers);
    EXPECT_EQ(in_order[2], kNotNumbers);
    EXPECT_EQ(in_order[4], 0);
  }
}

// Many small differences in one long answer would show here as one.
TEST_F(CudaSampler, ALongAnswerIsTheSame) {
  constexpr int kWidth = 3000;
  SampleBatch batch = random_batch(4, kWidth, 1);
  for (int i = 0; i < kWidth; ++i) {
    batch.logits[static_cast<size_t>(i)] = static_cast<float>(i * 7919 % 1009) * 0.01f;
  }
  SamplingParams params;
  params.seed = 77;
  params.top_p = 0.95;
  params.top_k = 400;
  params.repetition_penalty = 1.1;
  params.frequency_penalty = 0.3;
  batch.params[0] = params;
  for (int step = 0; step < 200; ++step) {
    SampleRow& row = batch.rows[0];
    row.history = batch.histories[0];
    row.position = static_cast<uint32_t>(row.history.size());
    row.prompt_tokens = 0;
    const std::vector<SampleOutput> found = sample_on_card(batch);
    expect_same(batch, found);
    ASSERT_FALSE(HasFailure()) << "step " << step;
    batch.histories[0].push_back(found[0].token);
  }
}

// Steps that are submitted before the tokens of the one before are known: histories lack their last
// token, which the card knows, and a row that only the host samples waits for.
TEST_F(CudaSampler, HistoriesMayLackATokenThatIsInFlight) {
  constexpr size_t kRows = 40;
  SampleBatch batch = random_batch(5, 3000, kRows);
  for (SamplingParams& params : batch.params) {
    params.allowed_token_ids.reset();  // so that every row has a token
    params.repetition_penalty = 1.2;
  }
  const auto sampler = Sampler::create(*device_, kRows, 100).value();
  const Buffer memory = device_->allocate(batch.logits.size() * sizeof(float), "logits").value();
  ASSERT_TRUE(device_->upload(memory.data(), batch.logits.data(), memory.bytes()).ok());
  Tensor logits = batch.tensor();
  logits.data = memory.data();
  const Buffer scratch =
      device_->allocate(block_sampler::scratch_bytes(kRows, batch.width) + 64, "scratch").value();
  ThreadPool pool(2);
  const auto submit = [&](const std::vector<SampleRow>& rows) {
    Arena arena(scratch.data(), scratch.bytes());
    ExecContext ctx{*device_, pool, arena, {}, false};
    sampler->submit(ctx, logits, rows);
  };
  submit(batch.rows);
  for (int step = 0; step < 3; ++step) {
    const SampleBatch before = batch;
    const std::vector<SampleOutput> expected = sample_on_cpu(batch);
    std::vector<SampleRow> ahead = batch.rows;
    for (size_t i = 0; i < kRows; ++i) {
      ASSERT_GE(expected[i].token, 0) << describe(batch, i);
      ahead[i].in_flight = static_cast<int32_t>(i);
      ahead[i].history = before.histories[i];
      batch.histories[i].push_back(expected[i].token);
      batch.rows[i].history = batch.histories[i];
      ahead[i].position = batch.rows[i].position += 1;
    }
    if (step == 1) batch.params[7].dry_multiplier = 0.8;  // the host's
    submit(ahead);
    const std::vector<SampleOutput> found = sampler->collect().value();
    for (size_t i = 0; i < kRows; ++i) {
      EXPECT_EQ(found[i].token, expected[i].token) << "step " << step << ", " << describe(batch, i);
    }
  }
  expect_same(batch, sampler->collect().value());
}

}  // namespace
}  // namespace tinyvllm
