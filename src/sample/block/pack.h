// The host's side of sampling on a card: which rows it takes, how they are told to it, and what its
// answers mean.
#pragma once

#include <span>
#include <vector>

#include "sample/block/device_row.h"
#include "sample/sampler.h"

namespace tinyvllm::block_sampler {

// What a card does; a row that needs more is the CPU's.
bool supports_vocabulary(int64_t width);
bool supports_filters(const SamplingParams& params);    // not typical_p and xtc
bool supports_penalties(const SamplingParams& params);  // not dry
bool supports_biases(const SamplingParams& params);  // not more than are looked through one by one
bool supports_logprobs(const SamplingParams& params);  // as many as fit into Scores
bool supports(const SamplingParams& params, int64_t width);

// Rows as a card reads them, in one piece that is copied up as it is. Its memory is kept from step
// to step.
class PackedRows {
 public:
  // Rows that are all supported.
  void pack(std::span<const SampleRow> rows, int64_t width);

  std::span<const int32_t> words() const { return words_; }
  bool wants_scores() const { return wants_scores_; }

 private:
  DeviceRow pack_row(const SampleRow& row, int64_t width);
  void append_edits(const SampleRow& row, DeviceRow& to);
  Words append(std::span<const int32_t> ids);
  Words append_banned(const SampleRow& row, bool in_flight);
  Words append_banned_after(const SampleRow& row);
  uint32_t end() const { return static_cast<uint32_t>(words_.size() - first_word_); }

  std::vector<int32_t> words_;  // the rows, then what they refer to
  size_t first_word_ = 0;
  int32_t edited_ = 0;
  bool wants_scores_ = false;
};

// Scratch that any `rows` rows may need.
size_t scratch_bytes(int64_t rows, int64_t width);

// What the sampler answers. `scores` may be null if the row wants none.
SampleOutput unpack(const SampleRow& row, int32_t token, const Scores* scores);

}  // namespace tinyvllm::block_sampler
