#include "engine/scorer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tinyvllm {
namespace {

constexpr int kBlockSize = 16;
constexpr int kChunk = 256;      // tokens per step where no logits are wanted
constexpr int kLogitChunk = 64;  // where they are: 12 MB of them for a vocabulary of 49152

TokenScore score_row(const float* logits, int64_t count, int32_t token) {
  const float* best = std::max_element(logits, logits + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(logits[i] - *best);
  const auto total = static_cast<float>(std::log(sum));
  return {logits[token] - *best - total, static_cast<int32_t>(best - logits), -total};
}

}  // namespace

Result<std::unique_ptr<Scorer>> Scorer::create(Runtime& runtime, const Model& model,
                                               int max_tokens) {
  std::unique_ptr<Scorer> scorer(new Scorer(runtime, max_tokens));
  RunnerConfig config;
  config.block_size = kBlockSize;
  const size_t groups = model.info().kv_groups.size();
  const int num_blocks = (max_tokens + kBlockSize - 1) / kBlockSize;
  config.num_blocks.assign(groups, 1 + num_blocks);  // the null block too
  config.max_num_batched_tokens = kChunk;
  config.max_num_logits = kLogitChunk;
  TRY_ASSIGN(scorer->runner_, ModelRunner::create(runtime, model, config));
  std::vector<int32_t> blocks(static_cast<size_t>(num_blocks));
  std::iota(blocks.begin(), blocks.end(), 1);
  scorer->tables_.assign(groups, blocks);
  return scorer;
}

Status Scorer::feed(std::span<const int32_t> tokens, int position, bool all_logits) {
  SequencePlan sequence;
  sequence.sequence = 1;
  sequence.position = position;
  sequence.num_tokens = static_cast<int>(tokens.size());
  sequence.block_tables = &tables_;
  sequence.all_logits = all_logits;
  StepPlan plan;
  plan.sequences.push_back(sequence);
  plan.tokens.assign(tokens.begin(), tokens.end());
  const StepResult result = runner_->wait(runner_->submit(plan));
  return result.error.empty() ? Status() : error(result.error);
}

Result<std::vector<TokenScore>> Scorer::score(std::span<const int32_t> tokens, int first) {
  const int count = static_cast<int>(tokens.size());
  CHECK(first >= 1 && count <= max_tokens_) << first << " of " << count << " tokens";
  std::vector<TokenScore> scores;
  runner_->on_logits([&](const StepPlan& plan, const Tensor& logits) {
    if (logits.rows == 0) return;
    // Row i follows the token at its position and judges the one after that.
    const int32_t* next = tokens.data() + plan.sequences.front().position + 1;
    const size_t begin = scores.size();
    scores.resize(begin + static_cast<size_t>(logits.rows));
    runtime_.pool().parallel_for(logits.rows, [&](int64_t row, int) {
      scores[begin + static_cast<size_t>(row)] =
          score_row(logits.f32() + row * logits.stride, logits.cols, next[row]);
    });
  });
  // The logits that judge tokens[first] are those of the token before it; the last token is judged
  // and never fed.
  Status fed;
  for (int at = 0; at < count - 1 && fed.ok();) {
    const bool wanted = at >= first - 1;
    const int end = std::min(at + (wanted ? kLogitChunk : kChunk), wanted ? count - 1 : first - 1);
    fed = feed(tokens.subspan(static_cast<size_t>(at), static_cast<size_t>(end - at)), at, wanted);
    at = end;
  }
  runner_->on_logits(nullptr);
  TRY(fed);
  return scores;
}

}  // namespace tinyvllm
