// What op tests and `bench ops` both need: a context that runs an op twice, dry to measure its
// scratch and then for real; random data and weights of every type; ragged batches with scattered
// blocks.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "base/half.h"
#include "core/batch.h"
#include "device/cpu/cpu_device.h"
#include "device/exec_context.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace tinyvllm::ops {

using Op = std::function<void(ExecContext&)>;

class OpRunner {
 public:
  explicit OpRunner(Isa isa = supported_isas().back(), int threads = 1)
      : device_(isa), pool_(threads) {}

  Device& device() { return device_; }
  ThreadPool& pool() { return pool_; }

  void run(const Op& op, std::span<const KvView> kv = {}) {
    Arena measure;
    ExecContext dry{device_, pool_, measure, kv, true};
    op(dry);
    if (measure.peak() > scratch_.size()) scratch_.resize(measure.peak());
    Arena arena(scratch_.data(), measure.peak());  // a byte more than measured is a failed CHECK
    ExecContext ctx{device_, pool_, arena, kv, false};
    op(ctx);
  }

 private:
  CpuDevice device_;
  ThreadPool pool_;
  std::vector<char> scratch_;
};

// A float matrix with room for rows that lie apart.
struct Matrix {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;
  std::vector<float> values;

  Matrix(int64_t r, int64_t c, int64_t padding = 0)
      : rows(r), cols(c), stride(c + padding), values(static_cast<size_t>(r * stride)) {}
  float* row(int64_t r) { return values.data() + r * stride; }
  const float* row(int64_t r) const { return values.data() + r * stride; }
  Tensor tensor() {
    Tensor t(values.data(), DType::kF32, rows, cols);
    t.stride = stride;
    return t;
  }
};

inline Matrix random_matrix(int64_t rows, int64_t cols, uint32_t seed, float scale = 1,
                            int64_t padding = 0) {
  Matrix m(rows, cols, padding);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  for (float& v : m.values) v = normal(random);
  return m;
}

// Weights as a file would have them: random quants, scales that make values of about 1/sqrt(in).
struct Weights {
  DType dtype = DType::kF32;
  int64_t out = 0;
  int64_t in = 0;
  std::vector<uint8_t> bytes;

  TensorView view() const { return TensorView{bytes.data(), dtype, Shape{out, in}}; }
};
Weights random_weights(DType dtype, int64_t out, int64_t in, uint32_t seed);
std::pair<Weights, Weights> halves_of(const Weights& both);  // its upper rows and its lower
int64_t whole_blocks(DType dtype, int64_t in);               // rounded up

Linear linear_of(Device& device, ThreadPool& pool, const std::vector<const Weights*>& weights,
                 const std::vector<const Matrix*>& biases = {});

constexpr float kNormEps = 1e-5f;
Norm norm_of(Device& device, NormKind kind, const Matrix& weight, const Matrix* bias = nullptr);

// Block tables of some sequences, dealt out in random order; the null block is left alone.
struct DealtBlocks {
  int block_size = 0;
  int num_blocks = 1;
  std::vector<std::vector<int32_t>> blocks;  // per sequence

  DealtBlocks(const std::vector<int>& lengths, int block_size, uint32_t seed);
};

// Query tokens [begin, begin + count) of a sequence; what came before is in the cache.
struct Chunk {
  int sequence = 0;
  int begin = 0;
  int count = 1;
};

// Owns a batch's buffer. Token ids are positions; logits are wanted of each chunk's last token.
class TestBatch {
 public:
  TestBatch(const DealtBlocks& tables, const std::vector<Chunk>& chunks);
  const Batch& batch() const { return batch_; }

 private:
  std::vector<int32_t> buffer_;
  Batch batch_;
};

}  // namespace tinyvllm::ops
