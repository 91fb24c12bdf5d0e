// Chooses a token from a row of logits. Runs inside the runner, on the device that has the logits.
// Each row is chosen on its own: its company, the threads and the instruction set change nothing.
//
// What is done to a row, in this order. It is vLLM's; dry, typical_p and xtc stand where llama.cpp
// has them among their neighbours.
//
//    1  logprobs            taken from the row as it came: the model's own distribution
//    2  allowed_token_ids   all others are out
//    3  bad_words           the last token of a word, when the answer ends in the tokens before it
//    4  min_tokens          end ids and stop_token_ids are out until the answer is that long
//    5  logit_bias          added
//    6  repetition_penalty  of prompt and answer: logit > 0 is divided by it, else multiplied
//       frequency_penalty   of the answer: times the count is subtracted
//       presence_penalty    of the answer: subtracted
//    7  dry                 of prompt and answer, as far as dry_penalty_last_n reaches
//    8  temperature 0       the largest logit, the lowest id among equals, and nothing more;
//       otherwise logits are divided by it, values under 0.01 counting as 0.01
//    9  min_p               tokens with at least min_p of the likeliest one's probability stay
//   10  top_k               the first k stay; tokens rank by logit, equals by id
//   11  typical_p           tokens whose surprise is nearest the mean stay, up to that mass
//   12  top_p               the first tokens that together reach that mass stay
//   13  xtc                 with xtc_probability, of the tokens with at least xtc_threshold all but
//                           the last are out
//   14  one token is drawn, probabilities taken among those left (as in 11, 12 and 13)
//
// Probabilities are counted in integers (weight.h), so "reach that mass" has one meaning.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/sampling_params.h"
#include "core/step_plan.h"
#include "device/exec_context.h"
#include "device/runtime.h"

namespace tinyvllm {

struct SampleRow {
  const SamplingParams* params = nullptr;
  int64_t logit_row = 0;  // of the logits
  uint32_t position = 0;  // of the token being chosen: how many tokens there are before it
  uint32_t answer = 0;    // with the seed and the position, the key of the random numbers
  uint32_t prompt_tokens = 0;
  std::span<const int32_t> history;  // all `position` tokens, prompt first; may be empty unless
                                     // needs_history(*params)
  // Where the history lacks its last token: the row of the step before that chooses it.
  int32_t in_flight = -1;
  std::span<const int32_t> end_ids;
};

struct SampleOutput {
  int32_t token = kNotNumbers;    // or kNothingAllowed
  float logprob = 0;              // with params->logprobs, and likewise
  std::vector<TokenLogprob> top;  // its likeliest tokens; equals by id
};

// Whether a row's choice depends on the tokens before it.
bool needs_history(const SamplingParams& params);

// logits: [at least one row per sample, vocabulary] F32, not written to: rows may share one.
void sample(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
            std::span<SampleOutput> out);

namespace cuda_sampler {
class Tokens;
}
namespace block_sampler {
class PackedRows;
}

// The tokens of one step after another, on a device that may still be choosing when `submit`
// returns. A card does not do all that can be asked for: of rows that want more it brings the
// logits, and the host chooses when they are collected.
class Sampler {
 public:
  // Steps have at most so many rows, of logits so wide.
  static Result<std::unique_ptr<Sampler>> create(Runtime& runtime, int max_rows, int64_t width);
  ~Sampler();

  // Whether the device chooses, so that what a row chose is there for the next step.
  bool chooses_on_device(const SamplingParams& params) const;
  // What most steps' rows put behind their inputs, those with so many tokens of history.
  size_t input_bytes(size_t history) const;

  // Three calls for a step. What the device must know of its rows, behind its other inputs;
  void add_inputs(std::span<const SampleRow> rows, std::vector<int32_t>& inputs);
  // the choice, once those are where the device sees them (a dry run takes the scratch memory that
  // so many rows may need);
  void submit(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
              const int32_t* inputs);
  // and what the oldest step chose that was not collected yet. The caller does not have its turn.
  Result<std::vector<SampleOutput>> collect();

  // What the newest step chose, if that is known without waiting.
  const std::vector<SampleOutput>* newest() const;
  // The newest step's tokens where the device's ops find them, [rows]; null: the host knows all.
  const int32_t* on_device() const;

 private:
  struct HostRow {  // what the host needs to choose when the step is long over
    SampleRow row;
    SamplingParams params;
    std::vector<int32_t> history;
    std::vector<int32_t> end_ids;
    size_t index;
  };
  struct Step {
    std::vector<SampleOutput> outputs;
    std::vector<std::optional<int>> logprobs;  // that rows want, while the card's are to come
    std::vector<HostRow> host_rows;
    bool pending = false;  // the card's tokens are still to come
    Status failure;
  };
  Sampler(Runtime& runtime, int max_rows, int64_t width);
  Status submit_to_card(ExecContext& ctx, const Tensor& logits, std::span<const SampleRow> rows,
                        const int32_t* inputs, Step& step);
  Status receive(Step& step);
  void choose_here(Step& step, const float* logits);

  Runtime& runtime_;
  const size_t max_rows_;
  const int64_t width_;
  std::deque<Step> steps_;
  std::unique_ptr<cuda_sampler::Tokens> tokens_;  // of a card
  std::unique_ptr<block_sampler::PackedRows> packed_;
  std::unique_ptr<char[]> scratch_;  // of the host beside a card, once it has chosen
  // Of the step whose inputs were added last: where they begin, and whether they are packed rows.
  std::optional<size_t> added_;
  bool is_packed_ = false;
};

// A row whose token is known already: a prompt's.
struct ScoreRow {
  int64_t logit_row = 0;
  int32_t token = 0;
  int top = 0;  // how many of the likeliest tokens are wanted
};

// What the model thought of these tokens: logprob and top are filled, the token stays as it was.
void score(ExecContext& ctx, const Tensor& logits, std::span<const ScoreRow> rows,
           std::span<SampleOutput> out);

}  // namespace tinyvllm
