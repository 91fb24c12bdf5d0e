// An NVIDIA card as a device: memory, one stream on which every op is enqueued, and pinned memory
// that the host's side of a step goes up through. Without CUDA in the build, no_cuda/ stands in.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "device/device.h"

struct CUstream_st;

namespace tinyvllm {

class CublasLt;

struct CudaOptions {
  bool deterministic = false;       // results do not depend on company, at a price in speed
  double memory_utilization = 0.9;  // of the card's memory, what engines may use
};

class CudaDevice final : public Device {
 public:
  static Result<std::unique_ptr<CudaDevice>> create(const CudaOptions& options);
  ~CudaDevice() override;

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string name() const override { return name_; }
  std::string hardware() const override { return hardware_; }
  DeviceSpec spec() const override;
  Result<Buffer> allocate(size_t bytes, const std::string& what) override;
  void free(void* data, size_t bytes) override;
  size_t available_memory() const override;
  DType activation_dtype() const override { return DType::kF16; }
  bool host_reads() const override { return false; }
  Status upload(void* to, const void* from, size_t bytes) override;
  Status download(void* to, const void* from, size_t bytes) override;
  const void* stage(StageSlot slot, const void* host, size_t bytes) override;
  std::unique_ptr<StepRecorder> make_recorder() override;
  int steps_ahead() const override { return 1; }
  int step_tokens() const override { return 8192; }
  size_t cache_budget() const override;
  void begin_timing() override;
  int64_t end_timing_ns() override;
  // Counts the times that a staged input moved: what was recorded before points to the old place.
  int stage_moves() const { return stage_moves_; }

  CUstream_st* stream() const { return stream_; }
  CublasLt& cublaslt() { return *cublaslt_; }
  bool deterministic() const { return options_.deterministic; }

 private:
  explicit CudaDevice(const CudaOptions& options);
  Status open();

  // Host memory that the card reads by itself. Two of them take turns: one may still be read while
  // the other is written.
  struct Pinned {
    void* data = nullptr;
    size_t bytes = 0;
    void* copied = nullptr;  // event: free again
  };
  struct Staged {
    Pinned pinned[2];
    int next = 0;
    void* device = nullptr;
    size_t bytes = 0;
  };
  Status grow(Pinned& pinned, size_t bytes);
  ThreadPool& copiers();
  static void release(Pinned& pinned);

  const CudaOptions options_;
  std::string name_;
  std::string hardware_;
  CUstream_st* stream_ = nullptr;
  std::unique_ptr<CublasLt> cublaslt_;
  Staged staged_[static_cast<size_t>(StageSlot::kCount)];
  int stage_moves_ = 0;
  void* timing_[2] = {};  // events: begin and end
  Pinned uploads_[2];     // pieces of weights
  int next_upload_ = 0;
  std::unique_ptr<ThreadPool> copiers_;  // once something was uploaded
};

}  // namespace tinyvllm
