// Rotates a token's queries and keys and writes its K and V, all heads, on one thread.
#include <array>
#include <cstring>

#include "base/half.h"
#include "ops/cpu/kernel_table.h"
#include "ops/cpu/kv_layout.h"
#include "ops/cpu/ops.h"

namespace tinyvllm::ops::cpu {
namespace {

constexpr int64_t kTokensPerTask = 4;
constexpr int kMaxHeadDim = 256;

// One token's K becomes lane `offset % 8` of its group of 8.
void write_kv(const Kernels& kernel, const KvLayout& layout, const KvSpec& spec, int layer,
              int32_t block, int offset, int head, const float* k, const float* v) {
  char* group = layout.k_group(layer, block, head, offset);
  char* v_group = layout.v_group(layer, block, head, offset);
  const int lane = offset % kKvLanes;
  char* row = v_group + static_cast<size_t>(lane * layout.v_dim()) * layout.element_bytes();
  if (spec.dtype == DType::kI8) {
    std::array<int8_t, kMaxHeadDim> bytes;
    auto* k_scales = reinterpret_cast<float*>(group + layout.k_group_data());
    auto* v_scales = reinterpret_cast<float*>(v_group + layout.v_group_data());
    k_scales[lane] = kernel.to_i8(k, spec.k_dim, bytes.data());
    v_scales[lane] = kernel.to_i8(v, spec.v_dim, reinterpret_cast<int8_t*>(row));
    auto* to = reinterpret_cast<int8_t*>(group) + lane;
    for (int d = 0; d < spec.k_dim; ++d) to[d * kKvLanes] = bytes[static_cast<size_t>(d)];
  } else if (spec.dtype == DType::kF16) {
    std::array<uint16_t, kMaxHeadDim> halves;
    kernel.to_f16(k, spec.k_dim, halves.data());
    auto* to = reinterpret_cast<uint16_t*>(group) + lane;
    for (int d = 0; d < spec.k_dim; ++d) to[d * kKvLanes] = halves[static_cast<size_t>(d)];
    kernel.to_f16(v, spec.v_dim, reinterpret_cast<uint16_t*>(row));
  } else {
    auto* to = reinterpret_cast<float*>(group) + lane;
    for (int d = 0; d < spec.k_dim; ++d) to[d * kKvLanes] = k[d];
    std::memcpy(row, v, static_cast<size_t>(spec.v_dim) * sizeof(float));
  }
}

}  // namespace

void rope_kv_write(ExecContext& ctx, const Rope& rope, const Batch& batch, const KvLayer& layer,
                   const Tensor& q, const Tensor& k, const Tensor& v) {
  const Kernels& kernel = kernels(ctx.device);
  const KvView& view = ctx.kv[static_cast<size_t>(layer.group)];
  const KvSpec& spec = view.spec;
  const KvLayout layout(view);
  const RotateKernel rotate =
      rope.pairing == RopePairing::kHalves ? kernel.rotate_halves : kernel.rotate_adjacent;
  const auto pairs = static_cast<int64_t>(rope.frequencies.size());
  const int32_t* positions = batch.positions();
  const int32_t* slots = batch.slots(layer.group);

  const auto token = [&](int64_t t) {
    std::array<float, kMaxHeadDim / 2> cosines;
    std::array<float, kMaxHeadDim / 2> sines;
    kernel.rotation(rope.frequencies.data(), pairs, static_cast<float>(positions[t]),
                    rope.magnitude, cosines.data(), sines.data());
    float* q_row = q.f32() + t * q.stride;
    float* k_row = k.f32() + t * k.stride;
    const float* v_row = v.f32() + t * v.stride;
    for (int64_t h = 0; h < q.cols; h += rope.head_dim) {
      rotate(cosines.data(), sines.data(), pairs, q_row + h);
    }
    const int32_t block = slots[t] / view.block_size;
    CHECK(slots[t] >= 0 && block < view.num_blocks) << "slot " << slots[t];
    for (int h = 0; h < spec.kv_heads; ++h) {
      rotate(cosines.data(), sines.data(), pairs, k_row + h * spec.k_dim);
      write_kv(kernel, layout, spec, layer.index, block, slots[t] % view.block_size, h,
               k_row + h * spec.k_dim, v_row + h * spec.v_dim);
    }
  };
  ctx.pool.parallel_for((q.rows + kTokensPerTask - 1) / kTokensPerTask, [&](int64_t task, int) {
    const int64_t end = std::min(q.rows, (task + 1) * kTokensPerTask);
    for (int64_t t = task * kTokensPerTask; t < end; ++t) token(t);
  });
}

}  // namespace tinyvllm::ops::cpu
