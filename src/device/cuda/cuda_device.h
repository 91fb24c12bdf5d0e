// An NVIDIA card as a device: memory, one stream on which everything is enqueued, and pinned memory
// that the host's side of a step goes up through. Without CUDA in the build, no_cuda/ stands in.
//
// One stream for all kernels, those that pack weights too: once a process has run any on a second,
// be it while loading alone, each kernel of a graph begins 0.3 µs later, and 16 or 128 streams of
// tokens are 4% slower.
#pragma once

#include <any>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cuda/card_memory.h"
#include "device/cuda/upload_scratch.h"
#include "device/cuda/uploader.h"
#include "device/device.h"

struct CUstream_st;

namespace tinyvllm {

class CublasLt;

struct CudaOptions {
  bool deterministic = false;       // results do not depend on company, at a price in speed
  double memory_utilization = 0.9;  // of the card's memory, what engines may use
  bool separate_buffers = false;    // so that compute-sanitizer sees where each ends; tests
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
  Status enqueued() override;
  Status health() const override;
  DType activation_dtype() const override { return DType::kF16; }
  bool host_reads() const override { return false; }
  Status upload(void* to, const void* from, size_t bytes) override;
  Status download(void* to, const void* from, size_t bytes) override;
  size_t unsent_bytes() const override { return uploader_->unsent(); }
  void wait_for_weights(const Uploader::News& news) override;
  Result<const void*> stage(const void* host, size_t bytes) override;
  Status reserve_stage(size_t bytes) override;
  std::unique_ptr<StepRecorder> make_recorder() override;
  int steps_ahead() const override { return 1; }
  int step_tokens() const override { return 8192; }
  size_t cache_budget(size_t activations) const override;
  int64_t mark() override;
  int64_t ns_between(int64_t begin, int64_t end) override;
  bool warms_up() const override { return true; }  // kernels are loaded when they are first used
  // Counts the times that a staged input moved: what was recorded before points to the old place.
  int stage_moves() const { return stage_moves_; }

  CUstream_st* stream();  // of the ops: behind all weights
  CublasLt& cublaslt() { return *cublaslt_; }
  bool deterministic() const { return options_.deterministic; }

  // From here on it has failed, for the first reason that is given.
  void fail(const std::string& why);
  // An error that the card does not recover from (an address that is not there, say) is its end.
  Status judged(Status status);
  template <class T>
  Result<T> judged(Result<T> result) {
    if (!result.ok()) (void)judged(error(result.message()));
    return result;
  }

  // Weights come next: takes the memory beside whatever the caller does, and scratch, if some are
  // to be packed. An error, and nothing is taken, where the card has no room for the least of them.
  struct ExpectedWeights {
    size_t bytes = 0;        // with what lies between them
    size_t least_bytes = 0;  // that are needed in any case
    bool pack = false;
    std::vector<Uploader::Source> order;  // in which they are likely to be uploaded
  };
  Status expect_weights(const ExpectedWeights& expected);
  // Weights go up while the caller goes on; `then` enqueues, some time before `stream` is answered,
  // what follows the copy. `from` stays as it is until the memory they go to is freed, or `stream`
  // was asked for.
  Status upload_weights(void* to, const void* from, size_t bytes, Uploader::Then then);
  CUstream_st* behind_weights() { return stream_; }  // for `then`
  void forget_weights() override;
  Result<void*> scratch(size_t bytes);  // memory for some on their way, good until `then` has run
  void release_scratch();               // when all are there
  // On the card: where, in the host's memory, the first row began of all that were uploaded that
  // holds a number which is not finite; all ones when there was none.
  uint64_t* first_not_finite() const { return first_not_finite_; }
  std::any& arrived() { return arrived_; }  // what ops note of weights that are there; theirs alone

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
  static void release(Pinned& pinned);
  Status make_room(size_t bytes);
  Status send(const void* host, size_t bytes);
  void settle() const;  // memory is taken and given back

  const CudaOptions options_;
  std::string name_;
  std::string hardware_;
  CUstream_st* stream_ = nullptr;
  std::unique_ptr<CublasLt> cublaslt_;
  Staged staged_;
  int stage_moves_ = 0;
  std::vector<void*> marks_;  // events, used in turn
  int64_t next_mark_ = 0;
  std::unique_ptr<CardMemory> memory_;
  std::unique_ptr<Uploader> uploader_;
  std::unique_ptr<UploadScratch> scratch_;
  std::any arrived_;
  uint64_t* first_not_finite_ = nullptr;
  mutable std::mutex fault_mutex_;
  std::string fault_;           // under it
  bool is_expecting_ = false;   // weights, for which memory is taken
  bool is_uploading_ = false;   // weights that `stream_` does not know of yet
  mutable std::thread beside_;  // takes or gives back what takes long
};

}  // namespace tinyvllm
