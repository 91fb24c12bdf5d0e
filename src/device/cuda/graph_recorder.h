// Decode steps as CUDA graphs: the hundreds of launches of a step become one. A graph is recorded
// for a bucket of sizes when the bucket comes up a second time (the first run also warms up what
// may not happen during a recording) and played from then on. Steps that read prompts are few and
// long; they are enqueued as they are.
#pragma once

#include <map>
#include <utility>

#include "device/cuda/cuda_device.h"

struct CUgraphExec_st;

namespace tinyvllm {

class GraphRecorder final : public StepRecorder {
 public:
  explicit GraphRecorder(CudaDevice& device) : device_(device) {}
  ~GraphRecorder() override;

  BatchSizes padded(const BatchSizes& sizes) const override;
  void run(const Batch& batch, const std::function<void()>& work) override;

 private:
  using Key = std::pair<int, int>;  // sequences, blocks
  struct Recording {
    int runs = 0;
    uint64_t last_step = 0;
    CUgraphExec_st* graph = nullptr;
    bool failed = false;  // could not be recorded: enqueued as it is
  };
  void record(Recording& recording, const std::function<void()>& work);
  void forget();
  void forget_oldest();

  CudaDevice& device_;
  std::map<Key, Recording> recordings_;
  uint64_t steps_ = 0;
  int stage_moves_ = 0;
};

}  // namespace tinyvllm
