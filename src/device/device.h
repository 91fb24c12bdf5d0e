// A device owns memory and runs ops. Nothing above ops and sample asks which kind it is.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "core/batch.h"

namespace tinyvllm {

enum class DeviceKind { kCpu, kCuda };

class Device;

// Memory of a device, freed with the object.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, void* data, size_t bytes) : device_(device), data_(data), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// The work of a step, which a device may record once and play again. Belongs to one runner: what is
// recorded points into its memory.
class StepRecorder {
 public:
  virtual ~StepRecorder() = default;
  // The sizes to run a step at: who plays recordings rounds up, so that few of them serve all.
  virtual BatchSizes padded(const BatchSizes& sizes) const { return sizes; }
  // Enqueues `work`, which depends on nothing but the sizes of the batch and where it lies.
  virtual void run(const Batch& /*batch*/, const std::function<void()>& work) { work(); }
};

// What the system says of a device without measuring; 0: it does not.
struct DeviceSpec {
  size_t last_cache_bytes = 0;    // the cache before its memory
  double memory_bytes_per_s = 0;  // at most, by clock and width
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;      // "cpu-avx2", for people and telemetry
  virtual std::string hardware() const = 0;  // as its maker calls it: "NVIDIA H200"
  virtual DeviceSpec spec() const = 0;

  // Zeroed memory. `what` goes into the error: "4.2 GB for the KV cache, 1.1 GB free".
  virtual Result<Buffer> allocate(size_t bytes, const std::string& what) = 0;
  virtual void free(void* data, size_t bytes) = 0;
  virtual size_t available_memory() const = 0;
  // Whether all could be enqueued that was since the last call, or why not.
  virtual Status enqueued() { return Status(); }
  // A device that failed stays failed, and this says how. Safe to call from any thread.
  virtual Status health() const { return Status(); }

  // Host memory to the device's and back; both have happened when they return, as far as the host
  // and the ops that follow can tell.
  virtual Status upload(void* to, const void* from, size_t bytes) = 0;
  virtual Status download(void* to, const void* from, size_t bytes) = 0;
  // Bytes of weights that are still to be sent, where they go up while the caller goes on.
  virtual size_t unsent_bytes() const { return 0; }
  // Those that are expected and did not come are not looked at any more: their memory may go, and
  // what was taken for them is given back.
  virtual void forget_weights() {}
  // Waits until there are none, and says now and then how many are left.
  virtual void wait_for_weights(const std::function<void(size_t unsent)>& /*news*/) {}
  // A step's input as the device's ops see it, all of it in one piece. The host's side may be
  // changed at once; the device's is good until the next call, and stays where it is unless it must
  // grow.
  virtual Result<const void*> stage(const void* host, size_t bytes) = 0;
  // Makes the room that steps will need, so that none of them has to.
  virtual Status reserve_stage(size_t /*bytes*/) { return Status(); }

  virtual std::unique_ptr<StepRecorder> make_recorder() { return std::make_unique<StepRecorder>(); }
  // Steps worth submitting before the first one's result is looked at.
  virtual int steps_ahead() const = 0;
  // Tokens of a step beyond which more of them make it longer and no better.
  virtual int step_tokens() const = 0;
  // What the KV cache may take of the memory that is available now, of which activations take so
  // many bytes.
  virtual size_t cache_budget(size_t activations) const = 0;

  // A point in the device's work: passed when all that was enqueued before it is done. A number to
  // ask with, good until many more were made; below zero: the device works in the caller's time,
  // and the host's clock is right.
  virtual int64_t mark() { return -1; }
  // Between two of them by the device's own clock; waits until the later one has passed.
  virtual int64_t ns_between(int64_t /*begin*/, int64_t /*end*/) { return 0; }
  // Whether a step of a kind that was not run before takes much longer than the next such step.
  virtual bool warms_up() const { return false; }

  // Whether the host may read the device's memory where it lies.
  virtual bool host_reads() const = 0;

  // The dtype in which activations travel between ops.
  virtual DType activation_dtype() const = 0;
};

}  // namespace tinyvllm
