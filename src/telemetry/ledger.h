// The ledger: what every op call had to move and to do, and how long it took. From it profiles
// derive achieved GB/s and GFLOP/s. Kept by the engine thread, one per step context; an op without
// a ledger pays one comparison.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/stopwatch.h"

namespace tinyvllm {

// A step is decode when every sequence has one query token, prefill otherwise.
enum class Phase : uint8_t { kDecode, kPrefill };
inline const char* phase_name(Phase phase) {
  return phase == Phase::kDecode ? "decode" : "prefill";
}

struct OpCall {
  const char* op = "";        // a literal: "norm_linear"
  const char* kernel = "";    // that does the work, where it is not the op's own: "linear"
  const char* reason = "";    // why that kernel, where there was a choice
  DType dtype = DType::kF32;  // of the weights or the cache
  bool matmul = false;        // [rows, in] times [in, out]
  Phase phase = Phase::kPrefill;
  int layer = -1;    // -1 outside the layers
  int64_t rows = 0;  // tokens
  int64_t out = 0;   // columns of the result
  int64_t in = 0;    // columns of the input, or cached tokens seen
  double bytes = 0;  // that must be read and written, each once
  double flops = 0;  // multiplications and additions that must be done
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

class Ledger {
 public:
  void add(const OpCall& call) { calls_.push_back(call); }
  const std::vector<OpCall>& calls() const { return calls_; }
  void clear() { calls_.clear(); }

 private:
  std::vector<OpCall> calls_;
};

}  // namespace tinyvllm
