// A device owns memory and runs ops. Nothing above ops and sample asks which kind it is.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/dtype.h"
#include "base/result.h"

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

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  virtual std::string name() const = 0;  // "cpu-avx2", for people and telemetry

  // Zeroed memory. `what` goes into the error: "4.2 GB for the KV cache, 1.1 GB free".
  virtual Result<Buffer> allocate(size_t bytes, const std::string& what) = 0;
  virtual void free(void* data, size_t bytes) = 0;
  virtual size_t available_memory() const = 0;

  // Host memory to the device's and back; both have happened when they return, as far as the host
  // and the ops that follow can tell.
  virtual Status upload(void* to, const void* from, size_t bytes) = 0;
  virtual Status download(void* to, const void* from, size_t bytes) = 0;
  // A step's input as the device's ops see it: good until the call after the next.
  virtual const void* stage(const void* host, size_t bytes) = 0;

  // Whether the host may read the device's memory where it lies.
  virtual bool host_reads() const = 0;

  // The dtype in which activations travel between ops.
  virtual DType activation_dtype() const = 0;
};

}  // namespace tinyvllm
