#include "sample/cpu/row.h"

#include <cstring>
#include <functional>

namespace tinyvllm::cpu_sampler {
namespace {

constexpr float kOut = -std::numeric_limits<float>::infinity();

}  // namespace

Row::Row(const Kernels& kernels, const float* logits, Scratch& scratch)
    : kernels_(kernels), logits_(logits), scratch_(scratch) {
  numbers_ = kernels.block_maxima(logits, scratch.vocabulary, scratch.maxima);
  top_ = *std::max_element(scratch.maxima, scratch.maxima + scratch.blocks);
  std::fill_n(scratch.states, scratch.blocks, BlockState::kRaw);
}

float* Row::edit(int32_t id) {
  if (id < 0 || id >= scratch_.vocabulary) return nullptr;
  BlockState& state = scratch_.states[id / kBlock];
  if (state == BlockState::kOut) return nullptr;
  if (state == BlockState::kRaw) {
    const std::span<const float> raw = block(id / kBlock);
    std::memcpy(scratch_.edited + id / kBlock * kBlock, raw.data(), raw.size_bytes());
    state = BlockState::kEdited;
  }
  return scratch_.edited + id;
}

void Row::keep_only(std::span<const int32_t> ids) {
  std::fill_n(scratch_.states, scratch_.blocks, BlockState::kOut);
  for (const int32_t id : ids) {
    if (id < 0 || id >= scratch_.vocabulary) continue;
    BlockState& state = scratch_.states[id / kBlock];
    if (state == BlockState::kOut) {
      std::fill_n(scratch_.edited + id / kBlock * kBlock, block(id / kBlock).size(), kOut);
      state = BlockState::kEdited;
    }
    scratch_.edited[id] = logits_[id];
  }
}

void Row::rescan() {
  for (int64_t b = 0; b < scratch_.blocks; ++b) {
    if (scratch_.states[b] == BlockState::kOut) scratch_.maxima[b] = kOut;
    if (scratch_.states[b] != BlockState::kEdited) continue;
    const std::span<const float> edited = block(b);
    numbers_ &= kernels_.block_maxima(edited.data(), static_cast<int64_t>(edited.size()),
                                      scratch_.maxima + b);
  }
  top_ = *std::max_element(scratch_.maxima, scratch_.maxima + scratch_.blocks);
}

int32_t Row::argmax() const {
  const auto b =
      std::find(scratch_.maxima, scratch_.maxima + scratch_.blocks, top_) - scratch_.maxima;
  const std::span<const float> logits = block(b);
  return static_cast<int32_t>(b * kBlock +
                              (std::find(logits.begin(), logits.end(), top_) - logits.begin()));
}

float Row::bound_of_largest(int64_t count) const {
  if (count > scratch_.blocks) return kOut;
  float* ranked = scratch_.ranked_maxima;
  std::copy_n(scratch_.maxima, scratch_.blocks, ranked);
  std::nth_element(ranked, ranked + (count - 1), ranked + scratch_.blocks, std::greater<>());
  return ranked[count - 1];
}

}  // namespace tinyvllm::cpu_sampler
