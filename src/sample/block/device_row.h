// A row to be sampled, as a card is told of it: plain numbers. What depends only on the request and
// the position (the random number, which words are banned now) is worked out by the host in
// pack.cc, and lists of any length lie as 32-bit words behind the last row, all in one piece.
#pragma once

#include <stdint.h>

namespace tinyvllm::block_sampler {

constexpr int64_t kMostTokens = int64_t{1} << 21;  // of a vocabulary, for the bins of choose.h
constexpr int kMostScores = 20;                    // likeliest tokens that a row may ask for

// Words [begin, end) behind the rows.
struct Words {
  uint32_t begin;
  uint32_t end;
};

struct DeviceRow {
  int64_t logit_row;
  uint64_t random;  // bits of the number that draws the token
  double top_p;     // 1: all
  float scale;      // octaves per unit of logit; 0: greedy
  float floor;      // octaves under the likeliest that still count
  int32_t top_k;    // 0: all
  int32_t scores;   // likeliest tokens wanted, or -1: not even the chosen one's logprob
  int32_t edited;   // which piece of scratch the changed logits take, or -1: none are
  int32_t only_allowed;
  int32_t in_flight;  // row of the step before that chooses the history's last token, or -1
  float repetition, frequency, presence;
  Words allowed;       // ids
  Words banned;        // ids
  Words banned_after;  // pairs: the token in flight, the id that it bans
  Words biases;        // pairs: id, bits of the bias
  // Ids without the one in flight: of prompt and answer, when there is a repetition penalty, and of
  // the answer, when there is a frequency or presence penalty.
  Words seen;
  Words answer;
};
static_assert(sizeof(DeviceRow) % 8 == 0, "words follow the rows");

// The model's own view of a row and its choice. The host makes logprobs of it: logarithms are not
// the same everywhere.
struct Scores {
  uint64_t total;  // weight of all tokens at temperature 1
  float top;       // the largest logit
  float chosen;    // the chosen token's
  int32_t count;   // of the following, in no order
  int32_t ids[kMostScores];
  float logits[kMostScores];
};

}  // namespace tinyvllm::block_sampler
