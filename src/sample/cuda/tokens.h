// Tokens that a card chooses, where the logits are. They stay on the card for the next step to read
// and travel to the host behind the work that follows. Without CUDA: no_cuda/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/tensor.h"
#include "device/device.h"
#include "sample/block/device_row.h"

namespace tinyvllm::cuda_sampler {

class Tokens {
 public:
  // `width`: of the logits.
  static Result<std::unique_ptr<Tokens>> create(Device& device, int max_rows, int64_t width);
  ~Tokens();

  // With the choice that is enqueued next these rows of its logits come to the host.
  Status bring(const Tensor& logits, std::span<const int64_t> rows);
  // Enqueue a choice; at most two are under way at a time.
  // tokens[i] = the lowest id of the largest of row rows[i] (null: row i), or kNotNumbers
  // if the row has a NaN or no finite maximum
  void choose_largest(const Tensor& logits, const int32_t* rows, int64_t count);
  // tokens[i] = what rows[i] chooses (sample_rows.h). Some may look back: at a token that the
  // choice before has made.
  void sample(const Tensor& logits, const block_sampler::DeviceRow* rows, int64_t count,
              bool looks_back, void* scratch, bool wants_scores);

  const int32_t* on_device() const;  // [max_rows], of the newest choice
  // Waits for the oldest choice not collected yet. What it points to is good until the next choice
  // but one.
  struct Choice {
    const int32_t* tokens;
    const block_sampler::Scores* scores;  // null where none were wanted
    const float* logits;                  // the rows that were to be brought, one behind the other
  };
  Result<Choice> collect();

 private:
  struct Impl;
  explicit Tokens(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tinyvllm::cuda_sampler
