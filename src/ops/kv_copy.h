// Copies whole blocks of the cache, all layers of a group: what copy-on-write needs.
#pragma once

#include <span>

#include "core/step_plan.h"
#include "device/exec_context.h"

namespace tinyvllm::ops {

// In the order given; enqueued before anything that writes to the blocks.
void copy_kv_blocks(ExecContext& ctx, std::span<const BlockCopy> copies);

}  // namespace tinyvllm::ops
