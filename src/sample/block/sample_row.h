// A row's token, chosen by a block of threads: the same one that the CPU's samplers choose.
#pragma once

#include "sample/block/choose.h"
#include "sample/block/edit.h"

namespace tinyvllm::block_sampler {

// step_plan.h's, which nvcc cannot read; pack.cc holds them against each other.
constexpr int32_t kNotNumbersHere = -1;
constexpr int32_t kNothingAllowedHere = -2;

// What the model thought of the row, as it came.
template <class Block>
TINYVLLM_BLOCK void score_row(Block& block, Shared& shared, const DeviceRow& row,
                              const float* logits, int32_t width, float top, Scores& scores) {
  constexpr auto kScale = static_cast<float>(kLog2E);  // temperature 1
  uint64_t mine = 0;
  for_each_logit(block, logits, width,
                 [&](int32_t, float logit) { mine += weight_of(octaves_of(logit, top, kScale)); });
  uint64_t total = 0;
  block.sum_before(mine, &total);
  if (block.thread() == 0) {
    scores.total = total;
    scores.top = top;
    scores.count = 0;
  }
  block.sync();
  Chooser<Block>(block, shared, logits, width, top, kScale, kOut).likeliest(scores, row.scores);
}

// words: behind the rows; previous: tokens of the step before, where one is in flight; logits: this
// row's; scratch: `width` words, if the row is edited.
// All threads return the token; `scores` is written if the row wants any.
template <class Block>
TINYVLLM_BLOCK int32_t sample_row(Block& block, Shared& shared, const DeviceRow& row,
                                  const int32_t* words, const int32_t* previous,
                                  const float* logits, int32_t width, uint32_t* scratch,
                                  Scores* scores) {
  Best raw, best;
  const float* values = logits;
  if (row.edited >= 0) {
    edit_row(block, row, words, previous, logits, width, scratch, &raw, &best);
    values = reinterpret_cast<const float*>(scratch);
  } else {
    for_each_logit(block, logits, width, [&](int32_t id, float logit) { raw.meet(logit, id); });
    raw = best = block.best(raw);
  }
  if (!raw.is_distribution()) return kNotNumbersHere;
  if (!best.is_distribution()) return kNothingAllowedHere;
  if (row.scores >= 0) score_row(block, shared, row, logits, width, raw.value, *scores);

  int32_t token = best.id;
  if (row.scale > 0) {
    token =
        Chooser<Block>(block, shared, values, width, best.value, row.scale, row.floor).choose(row);
  }
  if (row.scores >= 0 && block.thread() == 0) scores->chosen = logits[token];
  return token;
}

}  // namespace tinyvllm::block_sampler
