// Tokens that a card chooses: the largest logit of each row, found where the logits are. They stay
// on the card for the next step to read and travel to the host behind the work that follows.
// Without CUDA: no_cuda/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/tensor.h"
#include "device/device.h"

namespace tinyvllm::cuda_sampler {

class Tokens {
 public:
  static Result<std::unique_ptr<Tokens>> create(Device& device, int max_rows);
  ~Tokens();

  // Enqueues: tokens[i] = the lowest id of the largest of row rows[i] (null: row i), or kNotNumbers
  // if the row has a NaN or no finite maximum. At most two choices are under way at a time.
  void choose(const Tensor& logits, const int32_t* rows, int64_t count);
  const int32_t* on_device() const;  // [max_rows], of the newest choice
  // Waits for the oldest choice not collected yet.
  Status collect(std::span<int32_t> tokens);

 private:
  struct Impl;
  explicit Tokens(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tinyvllm::cuda_sampler
