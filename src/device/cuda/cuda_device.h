// An NVIDIA card as a device: memory, one stream on which every op is enqueued, and pinned memory
// that the host's side of a step goes up through. Without CUDA in the build, no_cuda/ stands in.
#pragma once

#include <memory>

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
  Result<Buffer> allocate(size_t bytes, const std::string& what) override;
  void free(void* data, size_t bytes) override;
  size_t available_memory() const override;
  DType activation_dtype() const override { return DType::kF16; }
  bool host_reads() const override { return false; }
  Status upload(void* to, const void* from, size_t bytes) override;
  Status download(void* to, const void* from, size_t bytes) override;
  const void* stage(const void* host, size_t bytes) override;

  CUstream_st* stream() const { return stream_; }
  CublasLt& cublaslt() { return *cublaslt_; }
  bool deterministic() const { return options_.deterministic; }

 private:
  explicit CudaDevice(const CudaOptions& options);
  Status open();

  // Host memory that the card reads by itself, and what it becomes there. Two of them take turns:
  // one may still be read while the other is written.
  struct Staging {
    void* pinned = nullptr;
    void* device = nullptr;
    size_t bytes = 0;
    void* copied = nullptr;  // event: the pinned side is free again
  };
  Status grow(Staging& staging, size_t bytes);

  const CudaOptions options_;
  std::string name_;
  CUstream_st* stream_ = nullptr;
  std::unique_ptr<CublasLt> cublaslt_;
  Staging staging_[2];
  int next_staging_ = 0;
  Staging uploads_[2];  // pieces of weights
  int next_upload_ = 0;
};

}  // namespace tinyvllm
