#include "engine/warm_up.h"

#include <algorithm>

#include "base/stopwatch.h"

namespace tinyvllm {
namespace {

constexpr double kPatience = 0.2;  // seconds: a large model leaves out the longer prompts
constexpr int kPrompts[] = {32, 256, 2048};

}  // namespace

Status warm_up(const std::function<StepResult(const StepPlan&)>& run, const WarmUp& sizes) {
  SamplingParams likeliest;
  likeliest.temperature = 0;
  SamplingParams drawn;
  drawn.temperature = 1;
  drawn.seed = 0;
  const Stopwatch clock;
  const auto step = [&](int tokens, const SamplingParams& sampling) {
    SequencePlan sequence;
    sequence.num_tokens = std::min(tokens, sizes.most_tokens);
    const int blocks = (sequence.num_tokens + sizes.block_size - 1) / sizes.block_size;
    const std::vector<int32_t> table(static_cast<size_t>(blocks), kNullBlock);
    const BlockTables tables(sizes.groups, table);
    sequence.block_tables = &tables;
    sequence.sample = true;
    sequence.sampling = &sampling;
    StepPlan plan;
    plan.tokens.assign(static_cast<size_t>(sequence.num_tokens), 0);
    plan.sequences.push_back(sequence);
    const StepResult result = run(plan);
    return result.error.empty() ? Status() : error(result.error);
  };
  TRY(step(1, drawn));
  for (int i = 0; i < 2; ++i) TRY(step(1, likeliest));  // as it is, and recorded
  for (const int tokens : kPrompts) {
    if (clock.seconds() > kPatience) break;
    TRY(step(tokens, likeliest));
  }
  return Status();
}

}  // namespace tinyvllm
