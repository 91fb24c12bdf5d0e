#include "tests/ops/harness.h"

#include <cmath>

namespace tinyvllm::ops {
namespace {

void put_half(uint8_t* at, float value) {
  const uint16_t half = f32_to_f16(value);
  std::memcpy(at, &half, sizeof half);
}

// Where a quantized type keeps its float scales: byte offsets of (scale, minimum) in a block, -1
// for none, and the largest quant that the scale multiplies.
struct Scales {
  DType dtype;
  int scale;
  int min;
  float largest;
};
constexpr Scales kScales[] = {
    {DType::kQ4_0, 0, -1, 8},        {DType::kQ4_1, 0, 2, 15},
    {DType::kQ5_0, 0, -1, 16},       {DType::kQ5_1, 0, 2, 31},
    {DType::kQ8_0, 0, -1, 127},      {DType::kQ2_K, 80, 82, 3 * 15},
    {DType::kQ3_K, 108, -1, 4 * 32}, {DType::kQ4_K, 0, 2, 15 * 63},
    {DType::kQ5_K, 0, 2, 31 * 63},   {DType::kQ6_K, 208, -1, 32 * 127},
};

}  // namespace

Weights random_weights(DType dtype, int64_t out, int64_t in, uint32_t seed) {
  Weights w{dtype, out, in, {}};
  const DTypeInfo& info = dtype_info(dtype);
  w.bytes.resize(row_bytes(dtype, in) * static_cast<size_t>(out));
  std::mt19937 random(seed);
  const float typical = 1.0f / std::sqrt(static_cast<float>(in));
  std::normal_distribution<float> normal(0, typical);
  if (!is_quantized(dtype)) {
    for (size_t i = 0; i < static_cast<size_t>(out * in); ++i) {
      const float value = normal(random);
      uint8_t* at = w.bytes.data() + i * static_cast<size_t>(info.block_bytes);
      if (dtype == DType::kF32) {
        std::memcpy(at, &value, sizeof value);
      } else {
        const uint16_t half = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
        std::memcpy(at, &half, sizeof half);
      }
    }
    return w;
  }
  for (uint8_t& byte : w.bytes) byte = static_cast<uint8_t>(random());
  const auto* scales = std::find_if(std::begin(kScales), std::end(kScales),
                                    [&](const Scales& s) { return s.dtype == dtype; });
  CHECK(scales != std::end(kScales)) << info.name;
  std::uniform_real_distribution<float> spread(0.5f, 1.5f);
  for (size_t b = 0; b < w.bytes.size(); b += static_cast<size_t>(info.block_bytes)) {
    uint8_t* block = w.bytes.data() + b;
    put_half(block + scales->scale, 2 * typical * spread(random) / scales->largest);
    // K types subtract their minimum times a 6-bit factor, the others add it as it is.
    const float min = dtype_info(dtype).block_elements > 32 ? typical / 32 : -typical;
    if (scales->min >= 0) put_half(block + scales->min, min * spread(random));
  }
  return w;
}

std::pair<Weights, Weights> halves_of(const Weights& both) {
  const auto middle = both.bytes.begin() + static_cast<ptrdiff_t>(both.bytes.size() / 2);
  return {Weights{both.dtype, both.out / 2, both.in, {both.bytes.begin(), middle}},
          Weights{both.dtype, both.out / 2, both.in, {middle, both.bytes.end()}}};
}

int64_t whole_blocks(DType dtype, int64_t in) {
  const int block = dtype_info(dtype).block_elements;
  return (in + block - 1) / block * block;
}

Linear linear_of(Device& device, ThreadPool& pool, const std::vector<const Weights*>& weights,
                 const std::vector<const Matrix*>& biases) {
  std::vector<TensorView> views;
  std::vector<TensorView> bias_views;
  for (const Weights* w : weights) views.push_back(w->view());
  for (const Matrix* b : biases) {
    bias_views.push_back(TensorView{b->values.data(), DType::kF32, Shape{b->cols}});
  }
  return make_linear(device, pool, LinearParts{views, bias_views}).value();
}

Norm norm_of(Device& device, NormKind kind, const Matrix& weight, const Matrix* bias) {
  const TensorView w{weight.values.data(), DType::kF32, Shape{weight.cols}};
  TensorView b;
  if (bias != nullptr) b = TensorView{bias->values.data(), DType::kF32, Shape{bias->cols}};
  return make_norm(device, kind, kNormEps, w, bias == nullptr ? nullptr : &b).value();
}

DealtBlocks::DealtBlocks(const std::vector<int>& lengths, int size, uint32_t seed)
    : block_size(size) {
  for (const int length : lengths) {
    std::vector<int32_t>& table = blocks.emplace_back();
    for (int b = 0; b * block_size < length; ++b) table.push_back(num_blocks++);
  }
  std::vector<int32_t> order(static_cast<size_t>(num_blocks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin() + 1, order.end(), std::mt19937(seed));
  for (auto& table : blocks) {
    for (int32_t& block : table) block = order[static_cast<size_t>(block)];
  }
}

TestBatch::TestBatch(const DealtBlocks& tables, const std::vector<Chunk>& chunks) {
  BatchSizes sizes;
  sizes.num_sequences = sizes.num_logits = static_cast<int>(chunks.size());
  for (const Chunk& c : chunks) {
    sizes.num_tokens += c.count;
    sizes.max_queries = std::max(sizes.max_queries, c.count);
    const auto& table = tables.blocks[static_cast<size_t>(c.sequence)];
    sizes.max_blocks = std::max(sizes.max_blocks, static_cast<int>(table.size()));
  }
  buffer_.resize(Batch::buffer_elements(sizes));
  batch_ = Batch{sizes, buffer_.data(), buffer_.data()};
  const auto at = [&](const int32_t* section) { return buffer_.data() + (section - batch_.data); };

  int token = 0;
  for (int row = 0; row < sizes.num_sequences; ++row) {
    const Chunk& c = chunks[static_cast<size_t>(row)];
    const auto& table = tables.blocks[static_cast<size_t>(c.sequence)];
    std::copy(table.begin(), table.end(),
              at(batch_.block_table(0)) + static_cast<ptrdiff_t>(row) * sizes.max_blocks);
    at(batch_.query_offsets())[row] = token;
    at(batch_.kv_lengths())[row] = c.begin + c.count;
    at(batch_.adapters())[row] = -1;
    for (int position = c.begin; position < c.begin + c.count; ++position, ++token) {
      at(batch_.token_ids())[token] = position;
      at(batch_.positions())[token] = position;
      at(batch_.token_sequence())[token] = row;
      at(batch_.slots(0))[token] =
          table[static_cast<size_t>(position / tables.block_size)] * tables.block_size +
          position % tables.block_size;
    }
    at(batch_.logit_rows())[row] = token - 1;
  }
  at(batch_.query_offsets())[sizes.num_sequences] = token;
}

}  // namespace tinyvllm::ops
