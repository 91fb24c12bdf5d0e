// Steps 2 to 6 of sampler.h by a block of threads. Every token has a word of scratch: first marks
// of what is to happen to it, set in any order; then one thread does all of it in the right order
// and puts the changed logit in the word's place.
#pragma once

#include "sample/block/best.h"
#include "sample/block/device_row.h"

namespace tinyvllm::block_sampler {

enum Mark : uint32_t {
  kCount = (1u << 24) - 1,  // how often the answer has it
  kSeen = 1u << 24,
  kBiased = 1u << 25,
  kBanned = 1u << 26,
  kAllowed = 1u << 27,
};

// Sets a mark on each id of a list, every `stride` words; an id from outside changes nothing.
template <class Block, class Put>
TINYVLLM_BLOCK void for_each_id(const Block& block, const int32_t* words, const Words& list,
                                uint32_t stride, int32_t width, Put put) {
  const auto thread = static_cast<uint32_t>(block.thread());
  const auto threads = static_cast<uint32_t>(block.threads());
  for (uint32_t i = list.begin + thread * stride; i < list.end; i += threads * stride) {
    const int32_t id = words[i];
    if (id >= 0 && id < width) put(id);
  }
}

// What the history's last token adds, which only the card knows yet.
template <class Block>
TINYVLLM_BLOCK void mark_in_flight(const Block& block, const DeviceRow& row, const int32_t* words,
                                   int32_t last, int32_t width, uint32_t* marks) {
  for (uint32_t i = row.banned_after.begin; i < row.banned_after.end; i += 2) {
    const int32_t id = words[i + 1];
    if (words[i] == last && id >= 0 && id < width) block.set_bits(marks + id, kBanned);
  }
  if (last < 0 || last >= width) return;
  if (row.repetition != 1) block.set_bits(marks + last, kSeen);
  if (row.frequency != 0 || row.presence != 0) block.add(marks + last, 1);
}

template <class Block>
TINYVLLM_BLOCK void set_marks(const Block& block, const DeviceRow& row, const int32_t* words,
                              const int32_t* previous, int32_t width, uint32_t* marks) {
  for (int32_t id = block.thread(); id < width; id += block.threads()) marks[id] = 0;
  block.sync();
  const auto put = [&](const Words& list, uint32_t stride, uint32_t mark) {
    for_each_id(block, words, list, stride, width,
                [&](int32_t id) { block.set_bits(marks + id, mark); });
  };
  put(row.allowed, 1, kAllowed);
  put(row.banned, 1, kBanned);
  put(row.biases, 2, kBiased);
  put(row.seen, 1, kSeen);
  for_each_id(block, words, row.answer, 1, width, [&](int32_t id) { block.add(marks + id, 1); });
  if (block.thread() == 0 && row.in_flight >= 0) {
    mark_in_flight(block, row, words, previous[row.in_flight], width, marks);
  }
  block.sync();
}

TINYVLLM_ANYWHERE inline float edited(float logit, int32_t id, uint32_t marks, const DeviceRow& row,
                                      const int32_t* words) {
  if (row.only_allowed != 0 && (marks & kAllowed) == 0) logit = kOut;
  if ((marks & kBanned) != 0) logit = kOut;
  if ((marks & kBiased) != 0) {
    for (uint32_t i = row.biases.begin; i < row.biases.end; i += 2) {
      if (words[i] == id) logit += __builtin_bit_cast(float, words[i + 1]);
    }
  }
  if ((marks & kSeen) != 0) logit = logit > 0 ? logit / row.repetition : logit * row.repetition;
  if ((marks & kCount) != 0) {
    logit -= row.frequency * static_cast<float>(marks & kCount);
    logit -= row.presence;
  }
  return logit;
}

// Fills `scratch`, a word per token, with the changed logits. Finds the best before and after.
template <class Block>
TINYVLLM_BLOCK void edit_row(Block& block, const DeviceRow& row, const int32_t* words,
                             const int32_t* previous, const float* logits, int32_t width,
                             uint32_t* scratch, Best* before, Best* after) {
  set_marks(block, row, words, previous, width, scratch);
  Best raw, changed;
  for_each_logit(block, logits, width, [&](int32_t id, float logit) {
    raw.meet(logit, id);
    const float value = edited(logit, id, scratch[id], row, words);
    changed.meet(value, id);
    scratch[id] = __builtin_bit_cast(uint32_t, value);
  });
  *before = block.best(raw);
  *after = block.best(changed);
}

}  // namespace tinyvllm::block_sampler
