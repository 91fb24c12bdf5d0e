// The card chooses the CPU's tokens, with the CPU's logprobs to the bit.
#include <gtest/gtest.h>

#include "device/runtime.h"
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
    RuntimeOptions options;
    options.threads = 2;
    options.device = DeviceKind::kCuda;
    options.cuda.separate_buffers = true;
    auto runtime = Runtime::create(options);
    if (!runtime.ok()) GTEST_SKIP() << runtime.message();
    runtime_ = std::move(runtime.value());
    device_ = &runtime_->device();
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
        device_->stage(packed_.words().data(), packed_.words().size_bytes()).value());
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
      rows = device_->stage(which->data(), which->size() * sizeof(int32_t)).value();
    }
    std::vector<int32_t> chosen(which == nullptr ? static_cast<size_t>(batch.logit_rows)
                                                 : which->size());
    const auto count = static_cast<int>(chosen.size());
    const auto tokens = cuda_sampler::Tokens::create(*device_, count, batch.width).value();
    tokens->choose_largest(tensor, static_cast<const int32_t*>(rows), count);
    const auto choice = tokens->collect().value();
    EXPECT_EQ(choice.scores, nullptr);
    std::copy_n(choice.tokens, chosen.size(), chosen.begin());
    return chosen;
  }

  void expect_agreement(uint32_t seed, int vocabulary, size_t rows) {
    const SampleBatch batch = random_batch(seed, vocabulary, rows);
    expect_same(batch, sample_on_card(batch));
  }

  std::unique_ptr<Runtime> runtime_;
  Device* device_ = nullptr;
  PackedRows packed_;
};

// The tokens of a batch, a step at a time, as a runner has them sampled. A step's logits are gone
// when its successor has run.
class Steps {
 public:
  Steps(Runtime& runtime, const SampleBatch& batch)
      : runtime_(runtime),
        batch_(batch),
        sampler_(
            Sampler::create(runtime, static_cast<int>(batch.rows.size()), batch.width).value()),
        logits_(allocate(batch.logits.size() * sizeof(float))),
        scratch_(allocate(64 + block_sampler::scratch_bytes(static_cast<int64_t>(batch.rows.size()),
                                                            batch.width))) {}

  void submit(const std::vector<SampleRow>& rows) {
    Device& device = runtime_.device();
    std::vector<int32_t> inputs = {1, 2, 3};  // of others
    sampler_->add_inputs(rows, inputs);
    const void* staged = device.stage(inputs.data(), inputs.size() * sizeof(int32_t)).value();
    EXPECT_TRUE(device.upload(logits_.data(), batch_.logits.data(), logits_.bytes()).ok());
    Arena arena(scratch_.data(), scratch_.bytes());
    ExecContext ctx{device, runtime_.pool(), arena, {}, false};
    Tensor logits = batch_.tensor();
    logits.data = logits_.data();
    sampler_->submit(ctx, logits, rows, static_cast<const int32_t*>(staged));
    const std::vector<char> garbage(logits_.bytes(), '\x41');
    EXPECT_TRUE(device.upload(logits_.data(), garbage.data(), garbage.size()).ok());
  }
  std::vector<SampleOutput> collect() { return sampler_->collect().value(); }

 private:
  Buffer allocate(size_t bytes) { return runtime_.device().allocate(bytes, "a test").value(); }

  Runtime& runtime_;
  const SampleBatch& batch_;
  std::unique_ptr<Sampler> sampler_;
  Buffer logits_;
  Buffer scratch_;
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
// token, which the card knows.
TEST_F(CudaSampler, HistoriesMayLackATokenThatIsInFlight) {
  constexpr size_t kRows = 40;
  SampleBatch batch = random_batch(5, 3000, kRows);
  for (SamplingParams& params : batch.params) {
    params.allowed_token_ids.reset();  // so that every row has a token
    params.repetition_penalty = 1.2;
  }
  Steps steps(*runtime_, batch);
  steps.submit(batch.rows);
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
    steps.submit(ahead);
    const std::vector<SampleOutput> found = steps.collect();
    for (size_t i = 0; i < kRows; ++i) {
      EXPECT_EQ(found[i].token, expected[i].token) << "step " << step << ", " << describe(batch, i);
    }
  }
  expect_same(batch, steps.collect());
}

// Logprobs of such a row, where no other row wants any.
TEST_F(CudaSampler, TheHostChoosesForARowInPlainCompany) {
  constexpr size_t kRows = 3;
  SampleBatch batch = random_batch(7, 3000, kRows);
  for (SamplingParams& params : batch.params) {
    params = SamplingParams();
    params.temperature = 0;
  }
  batch.params[1].dry_multiplier = 0.8;
  batch.params[1].logprobs = 3;
  Steps steps(*runtime_, batch);
  steps.submit(batch.rows);
  expect_same(batch, steps.collect());
}

// What a card does not do is done here, beside rows that it does, when the next step is long under
// way; and those rows find the tokens of the others in their places.
TEST_F(CudaSampler, TheHostChoosesForRowsThatTheCardDoesNot) {
  constexpr size_t kRows = 40;
  SampleBatch batch = random_batch(6, 3000, kRows);
  std::vector<SampleRow> cards;
  for (size_t i = 0; i < kRows; ++i) {
    SamplingParams& params = batch.params[i];
    params.allowed_token_ids.reset();
    params.repetition_penalty = 1.2;
    if (i % 7 == 3) params.dry_multiplier = 0.8;
    if (i % 7 == 4) params.typical_p = 0.5;
    if (i % 7 == 5) params.logprobs = 30;
  }
  Steps steps(*runtime_, batch);
  const std::vector<SampleOutput> expected = sample_on_cpu(batch);
  {
    const SampleBatch gone = batch;  // a row need not outlive the call
    std::vector<SampleRow> rows = batch.rows;
    for (size_t i = 0; i < kRows; ++i) {
      rows[i].history = gone.histories[i];
      rows[i].params = &gone.params[i];
    }
    steps.submit(rows);
  }
  SampleBatch next = batch;
  std::vector<size_t> which;
  for (size_t i = 0; i < kRows; ++i) {
    if (i % 7 >= 3 && i % 7 <= 5) continue;
    SampleRow row = batch.rows[i];
    row.in_flight = static_cast<int32_t>(i);
    row.position += 1;
    cards.push_back(row);
    which.push_back(i);
  }
  steps.submit(cards);
  expect_same(batch, steps.collect());
  const std::vector<SampleOutput> found = steps.collect();
  for (size_t i = 0; i < kRows; ++i) {
    next.histories[i].push_back(expected[i].token);
    next.rows[i].history = next.histories[i];
    next.rows[i].params = &next.params[i];
    next.rows[i].position += 1;
  }
  const std::vector<SampleOutput> then = sample_on_cpu(next);
  ASSERT_EQ(found.size(), which.size());
  for (size_t i = 0; i < which.size(); ++i) {
    EXPECT_EQ(found[i].token, then[which[i]].token) << describe(next, which[i]);
  }
}

}  // namespace
}  // namespace tinyvllm
