#include "device/cuda/graph_recorder.h"

#include <algorithm>
#include <bit>
#include <cuda_runtime_api.h>

#include "base/log.h"

namespace tinyvllm {
namespace {

constexpr size_t kMostGraphs = 64;
constexpr int kFewestBlocks = 16;  // of a block table's columns: 256 tokens at 16 a block

bool is_decode(const BatchSizes& sizes) {
  return sizes.max_queries == 1 && sizes.num_tokens == sizes.num_sequences &&
         sizes.num_logits == sizes.num_sequences;
}

// 1, 2, 4, then steps of about an eighth: at most that much of a step is padding.
int padded_sequences(int sequences) {
  if (sequences <= 4) return sequences == 3 ? 4 : sequences;
  const int step =
      std::max(4, static_cast<int>(std::bit_ceil(static_cast<unsigned>(sequences))) / 8);
  return (sequences + step - 1) / step * step;
}

}  // namespace

GraphRecorder::~GraphRecorder() { forget(); }

void GraphRecorder::forget() {
  while (!recordings_.empty()) forget_oldest();
}

// The one that was not played for the longest time.
void GraphRecorder::forget_oldest() {
  const auto oldest = std::min_element(
      recordings_.begin(), recordings_.end(),
      [](const auto& a, const auto& b) { return a.second.last_step < b.second.last_step; });
  if (oldest->second.graph != nullptr) cudaGraphExecDestroy(oldest->second.graph);
  recordings_.erase(oldest);
}

BatchSizes GraphRecorder::padded(const BatchSizes& sizes) const {
  if (!is_decode(sizes)) return sizes;
  BatchSizes padded = sizes;
  padded.num_sequences = padded_sequences(sizes.num_sequences);
  padded.num_tokens = padded.num_logits = padded.num_sequences;
  const auto blocks = static_cast<unsigned>(std::max(sizes.max_blocks, kFewestBlocks));
  padded.max_blocks = static_cast<int>(std::bit_ceil(blocks));
  return padded;
}

void GraphRecorder::run(const Batch& batch, const std::function<void()>& work) {
  if (!is_decode(batch.sizes)) {
    work();
    return;
  }
  if (stage_moves_ != device_.stage_moves()) {
    forget();
    stage_moves_ = device_.stage_moves();
  }
  const Key key{batch.sizes.num_sequences, batch.sizes.max_blocks};
  if (recordings_.size() == kMostGraphs && !recordings_.contains(key)) forget_oldest();
  Recording& recording = recordings_[key];
  recording.last_step = ++steps_;
  if (recording.graph == nullptr && recording.runs++ > 0 && !recording.failed) {
    record(recording, work);
  }
  if (recording.graph != nullptr) {
    // Whoever collects the tokens hears of a failure.
    cudaGraphLaunch(recording.graph, device_.stream());
  } else {
    work();
  }
}

void GraphRecorder::record(Recording& recording, const std::function<void()>& work) {
  cudaGraph_t graph = nullptr;
  cudaError_t status = cudaStreamBeginCapture(device_.stream(), cudaStreamCaptureModeThreadLocal);
  if (status == cudaSuccess) {
    work();
    status = cudaStreamEndCapture(device_.stream(), &graph);
  }
  if (status == cudaSuccess) status = cudaGraphInstantiate(&recording.graph, graph, 0);
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (status == cudaSuccess) return;
  recording.failed = true;
  recording.graph = nullptr;
  cudaGetLastError();
  const Status why = device_.judged(error(cudaGetErrorString(status)));
  if (!device_.health().ok()) return;
  log_warning(
      "a decode step could not be recorded as a CUDA graph, so steps are enqueued one by one: ",
      why.message());
}

}  // namespace tinyvllm
