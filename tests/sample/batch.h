// Rows that a card is asked to sample in one go, and what the CPU makes of them.
#pragma once

#include "tests/sample/generator.h"
#include "tests/sample/implementations.h"

namespace tinyvllm {

struct SampleBatch {
  std::vector<float> logits;  // [logit_rows, stride]
  int64_t logit_rows = 0;
  int64_t width = 0;
  int64_t stride = 0;
  std::vector<SamplingParams> params;
  std::vector<std::vector<int32_t>> histories;
  std::vector<int32_t> end_ids;
  std::vector<SampleRow> rows;

  Tensor tensor() const {
    Tensor all(const_cast<float*>(logits.data()), DType::kF32, logit_rows, width);
    all.stride = stride;
    return all;
  }
};

// Rows lie apart in memory, with NaN between them, and some share their logits.
inline SampleBatch random_batch(uint32_t seed, int vocabulary, size_t rows) {
  Generator generator(seed);
  SampleBatch batch;
  batch.logit_rows = static_cast<int64_t>(rows + 1) / 2;
  batch.width = vocabulary;
  batch.stride = vocabulary + generator.below(3);
  batch.logits.assign(static_cast<size_t>(batch.logit_rows * batch.stride), NAN);
  for (int64_t i = 0; i < batch.logit_rows; ++i) {
    const std::vector<float> row = generator.logits(static_cast<size_t>(vocabulary));
    std::copy(row.begin(), row.end(), batch.logits.begin() + i * batch.stride);
  }
  batch.end_ids = {vocabulary / 2, vocabulary - 1};
  batch.params.resize(rows);
  batch.histories.resize(rows);
  batch.rows.resize(rows);
  for (size_t i = 0; i < rows; ++i) {
    batch.params[i] = generator.params_for_cards(vocabulary);
    batch.histories[i] = generator.history(vocabulary);
    const auto length = static_cast<int>(batch.histories[i].size());
    SampleRow& row = batch.rows[i];
    row.params = &batch.params[i];
    row.logit_row = generator.below(static_cast<int>(batch.logit_rows));
    row.position = static_cast<uint32_t>(length);
    row.answer = static_cast<uint32_t>(generator.below(3));
    row.prompt_tokens = static_cast<uint32_t>(generator.below(length + 1));
    row.history = batch.histories[i];
    row.end_ids = batch.end_ids;
  }
  return batch;
}

// The batch as a card gets it one step ahead: of some answers the last token is in flight.
struct AheadOfTokens {
  std::vector<SampleRow> rows;
  std::vector<int32_t> previous;  // what the step before has chosen
};

inline AheadOfTokens ahead_of_tokens(const SampleBatch& batch) {
  AheadOfTokens ahead{batch.rows, {7, 7, 7}};
  for (size_t i = 0; i < batch.rows.size(); i += 2) {
    SampleRow& row = ahead.rows[i];
    if (row.position <= row.prompt_tokens) continue;
    row.in_flight = static_cast<int32_t>(ahead.previous.size());
    ahead.previous.push_back(row.history.back());
    row.history = row.history.first(row.history.size() - 1);
  }
  return ahead;
}

inline std::vector<SampleOutput> sample_on_cpu(const SampleBatch& batch) {
  TestDevice device(supported_isas().back());
  std::vector<SampleOutput> out(batch.rows.size());
  const Tensor logits = batch.tensor();
  ExecContext ctx = device.context(logits);
  sample(ctx, logits, batch.rows, out);
  return out;
}

inline std::string describe(const SampleBatch& batch, size_t i) {
  const SampleRow& row = batch.rows[i];
  const SamplingParams& p = *row.params;
  return str_cat("row ", i, " of ", batch.width, " tokens: temperature ", p.temperature, ", top_k ",
                 p.top_k, ", top_p ", p.top_p, ", min_p ", p.min_p, ", repetition ",
                 p.repetition_penalty, ", frequency ", p.frequency_penalty, ", presence ",
                 p.presence_penalty, ", min_tokens ", p.min_tokens, ", ", p.logit_bias.size(),
                 " biases, ", p.bad_words_token_ids.size(), " bad words, allowed ",
                 p.allowed_token_ids ? 1 : 0, ", logprobs ", p.logprobs.value_or(-1));
}

inline void expect_same(const SampleBatch& batch, const std::vector<SampleOutput>& found) {
  const std::vector<SampleOutput> expected = sample_on_cpu(batch);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].token, expected[i].token) << describe(batch, i);
    EXPECT_EQ(found[i].logprob, expected[i].logprob) << describe(batch, i);
    ASSERT_EQ(found[i].top.size(), expected[i].top.size()) << describe(batch, i);
    for (size_t t = 0; t < found[i].top.size(); ++t) {
      EXPECT_EQ(found[i].top[t].token, expected[i].top[t].token) << describe(batch, i);
      EXPECT_EQ(found[i].top[t].logprob, expected[i].top[t].logprob) << describe(batch, i);
    }
  }
}

}  // namespace tinyvllm
