// Matrix products with weights: the op where nearly all bytes and FLOPs of a step are. A Linear
// owns its weights in whatever layout its device multiplies fastest and shows only its sizes. The
// fused forms exist because they save a trip of the activations through memory.
//
// Row r of a result is the same bits whatever other rows are computed with it (numerics contract).
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "device/exec_context.h"
#include "ops/norm.h"

namespace tinyvllm::ops {

class Linear {
 public:
  struct Weights;  // the device's own: packed rows, scales, bias

  Linear();
  explicit Linear(std::unique_ptr<Weights> weights);
  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;
  ~Linear();

  int64_t in() const;
  int64_t out() const;
  size_t bytes() const;  // that one pass over the weights reads
  const Weights& weights() const { return *weights_; }

 private:
  std::unique_ptr<Weights> weights_;
};

struct LinearParts {
  std::span<const TensorView> weights;  // each [out_i, in]; results lie side by side in this order
  std::span<const TensorView> biases;   // empty, or one [out_i] per weight
  // Once repacked, the weights' own pages are given back to the system, so that memory holds them
  // once. For a file's map, which reads the same if anyone looks again, or if nobody will.
  bool drop_sources = false;
  // The only weight, where an Embedding has it on the device already.
  std::shared_ptr<void> on_device = nullptr;
};

// Loads what a device runs on weights when it gets them, so that the first does not wait for it.
// Beside anything else, on any thread.
void load_weight_kernels(const Device& device);
// These come next, likely in this order: room is made for them, and the first ones are brought
// near, beside whatever the caller does until then. They stay where they are until they came, or
// until Device::forget_weights. An error when the device cannot have room for them.
Status expect_weights(Device& device, std::span<const TensorView> weights);

// Parts of different dtypes are allowed (files mix them). The views must outlive the Linear: F16
// and BF16 are used where they lie.
Result<Linear> make_linear(Device& device, ThreadPool& pool, const LinearParts& parts);

// y = W x + b.  x: [tokens, in], y: [tokens, out]
void linear(ExecContext& ctx, const Linear& w, const Tensor& x, const Tensor& y);

// y += W x + b: projection and residual in one.
void linear_add(ExecContext& ctx, const Linear& w, const Tensor& x, const Tensor& y);

// y = W norm(x) + b
void norm_linear(ExecContext& ctx, const Norm& n, const Linear& w, const Tensor& x,
                 const Tensor& y);

enum class Gate { kSilu, kGeluTanh };

// y = gate(G norm(x)) · (U norm(x)), where w is [G; U].  x: [tokens, in], y: [tokens, out / 2]
void norm_linear_gated(ExecContext& ctx, const Norm& n, const Linear& w, Gate gate, const Tensor& x,
                       const Tensor& y);
// The same without a norm before it.
void linear_gated(ExecContext& ctx, const Linear& w, Gate gate, const Tensor& x, const Tensor& y);

}  // namespace tinyvllm::ops
