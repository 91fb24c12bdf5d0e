// A mixture of experts: a router gives every token its own few feed-forward networks out of many,
// and their results are added, weighted, in the router's order.
#pragma once

#include <memory>
#include <vector>

#include "device/exec_context.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace tinyvllm::ops {

struct Experts {
  std::vector<Linear> gate_up;      // each [hidden] → [2 · ffn]
  std::vector<Linear> down;         // each [ffn] → [hidden]
  std::shared_ptr<void> on_device;  // a card's table of them
};

// Once all experts are there: what a device needs to find them by number.
Status prepare_experts(Device& device, Experts& experts);

struct MoeParams {
  int used = 0;           // experts per token
  bool normalize = true;  // their weights are made to add up to 1
  Gate gate = Gate::kSilu;
};

// y += Σ weight_e · D_e (gate(G_e n) · U_e n),  n = norm(x), over the `used` experts e with the
// largest weight = softmax(router n), largest first, the lower number first among equals.
// x, y: [tokens, hidden], may be the same; router: [hidden] → [experts]
void moe_add(ExecContext& ctx, const Norm& n, const Linear& router, const Experts& experts,
             const MoeParams& params, const Tensor& x, const Tensor& y);

}  // namespace tinyvllm::ops
