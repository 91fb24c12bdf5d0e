#include "ops/kv_copy.h"

#include <cstring>

#include "ops/attention.h"
#include "ops/cuda/ops.h"
#include "ops/op_scope.h"

namespace tinyvllm::ops {

void copy_kv_blocks(ExecContext& ctx, std::span<const BlockCopy> copies) {
  if (ctx.dry_run || copies.empty()) return;
  const OpScope scope(ctx, [&] {
    double bytes = 0;
    for (const BlockCopy& copy : copies) {
      const KvView& view = ctx.kv[static_cast<size_t>(copy.group)];
      bytes += 2.0 * static_cast<double>(kv_block_bytes(view.spec, view.block_size));
    }
    const auto blocks = static_cast<int64_t>(copies.size());
    return OpCall{
        .op = "kv_copy", .dtype = ctx.kv.front().spec.dtype, .rows = blocks, .bytes = bytes};
  });
  for (const BlockCopy& copy : copies) {
    const KvView& view = ctx.kv[static_cast<size_t>(copy.group)];
    CHECK(copy.from < view.num_blocks && copy.to < view.num_blocks)
        << copy.from << " to " << copy.to << " of " << view.num_blocks << " blocks";
    const size_t bytes = kv_block_bytes(view.spec, view.block_size);
    char* data = static_cast<char*>(view.data);
    char* to = data + static_cast<size_t>(copy.to) * bytes;
    const char* from = data + static_cast<size_t>(copy.from) * bytes;
    if (ctx.device.kind() == DeviceKind::kCuda) {
      cuda::copy_kv_block(ctx, to, from, bytes);
    } else {
      std::memcpy(to, from, bytes);
    }
  }
}

}  // namespace tinyvllm::ops
