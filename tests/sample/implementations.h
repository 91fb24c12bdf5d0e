// The sampler in all its forms, so that one test serves them all: the reference, and sample() on a
// device of each instruction set of this machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "sample/reference/sample_row.h"
#include "sample/sampler.h"

namespace tinyvllm {

struct Implementation {
  std::string name;
  std::function<SampleOutput(const std::vector<float>& logits, const SampleRow& row)> sample;
  std::function<SampleOutput(const std::vector<float>& logits, const ScoreRow& row)> score;
};

// A CPU device and an arena of just the size that the dry run of a call asks for.
class TestDevice {
 public:
  explicit TestDevice(Isa isa, int threads = 1) : device_(isa), pool_(threads) {}

  ExecContext context(const Tensor& logits) {
    Arena measuring;
    ExecContext dry{device_, pool_, measuring, {}, /*dry_run=*/true};
    sample(dry, logits, {}, {});
    if (memory_.size() != measuring.peak()) memory_ = std::vector<char>(measuring.peak());
    arena_ = Arena(memory_.data(), memory_.size());
    return {device_, pool_, arena_, {}};
  }

 private:
  CpuDevice device_;
  ThreadPool pool_;
  std::vector<char> memory_;
  Arena arena_;
};

inline Tensor tensor_of(const std::vector<float>& logits, int64_t rows = 1) {
  return Tensor(const_cast<float*>(logits.data()), DType::kF32, rows,
                static_cast<int64_t>(logits.size()) / rows);
}

inline std::vector<Implementation> implementations() {
  std::vector<Implementation> all;
  all.push_back(
      {"reference",
       [](const std::vector<float>& logits, const SampleRow& row) {
         return reference::sample_row(logits.data(), static_cast<int64_t>(logits.size()), row);
       },
       [](const std::vector<float>& logits, const ScoreRow& row) {
         return reference::score_row(logits.data(), static_cast<int64_t>(logits.size()), row);
       }});
  for (const Isa isa : supported_isas()) {
    const auto device = std::make_shared<TestDevice>(isa);
    all.push_back({isa_name(isa),
                   [device](const std::vector<float>& logits, const SampleRow& row) {
                     ExecContext ctx = device->context(tensor_of(logits));
                     std::vector<SampleOutput> out(1);
                     sample(ctx, tensor_of(logits), {&row, 1}, out);
                     return out[0];
                   },
                   [device](const std::vector<float>& logits, const ScoreRow& row) {
                     ExecContext ctx = device->context(tensor_of(logits));
                     std::vector<SampleOutput> out(1);
                     score(ctx, tensor_of(logits), {&row, 1}, out);
                     return out[0];
                   }});
  }
  return all;
}

}  // namespace tinyvllm
