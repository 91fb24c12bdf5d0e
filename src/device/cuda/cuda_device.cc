#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <cuda_runtime_api.h>

#include "base/log.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/graph_recorder.h"

namespace tinyvllm {
namespace {

constexpr size_t kUploadPiece = size_t{64} << 20;
constexpr size_t kUploadSlice = size_t{1} << 20;  // of a piece, that one thread copies
// A core copies some 10 GB/s out of a mapped file, the bus takes five times that.
constexpr int kUploadThreads = 8;

Status check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return Status();
  return error("CUDA, ", what, ": ", cudaGetErrorString(status));
}

std::string human(size_t bytes) { return human_bytes(static_cast<double>(bytes)); }

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(const CudaOptions& options) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    return error("no CUDA device: ",
                 found != cudaSuccess ? cudaGetErrorString(found) : "the driver shows none",
                 "; use --device cpu, or check that nvidia-smi lists a card");
  }
  std::unique_ptr<CudaDevice> device(new CudaDevice(options));
  TRY(device->open());
  return device;
}

Status CudaDevice::open() {
  cudaDeviceProp properties;
  TRY(check(cudaGetDeviceProperties(&properties, 0), "properties of the card"));
  name_ = str_cat("cuda-sm", properties.major, properties.minor);
  hardware_ = properties.name;
  if (properties.major < 8) {
    return error(properties.name, " has compute capability ", properties.major, ".",
                 properties.minor, "; 8.0 or later is needed");
  }
  TRY(check(cudaSetDevice(0), "choosing the card"));
  TRY(check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"));
  for (void*& event : timing_) {
    TRY(check(cudaEventCreate(reinterpret_cast<cudaEvent_t*>(&event)), "an event"));
  }
  TRY_ASSIGN(cublaslt_, CublasLt::open());
  return Status();
}

CudaDevice::CudaDevice(const CudaOptions& options) : options_(options) {}

CudaDevice::~CudaDevice() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  for (Staged& staged : staged_) {
    for (Pinned& pinned : staged.pinned) release(pinned);
    if (staged.device != nullptr) cudaFree(staged.device);
  }
  for (Pinned& pinned : uploads_) release(pinned);
  for (void* event : timing_) {
    if (event != nullptr) cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }
  cublaslt_.reset();
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

DeviceSpec CudaDevice::spec() const {
  const auto attribute = [](cudaDeviceAttr which) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess ? value : 0;
  };
  // Every line of the bus carries two bits a clock.
  const double clock_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate);
  const double bus_bytes = attribute(cudaDevAttrGlobalMemoryBusWidth) / 8.0;
  return {static_cast<size_t>(attribute(cudaDevAttrL2CacheSize)), 2 * clock_hz * bus_bytes};
}

Result<Buffer> CudaDevice::allocate(size_t bytes, const std::string& what) {
  if (bytes == 0) return Buffer();
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    cudaGetLastError();  // so that it is not taken for the next call's
    return error("out of device memory: ", human(bytes), " for ", what, ", ",
                 human(available_memory()), " free");
  }
  TRY(check(cudaMemsetAsync(data, 0, bytes, stream_), "clearing memory"));
  return Buffer(this, data, bytes);
}

void CudaDevice::free(void* data, size_t /*bytes*/) {
  cudaStreamSynchronize(stream_);
  cudaFree(data);
}

size_t CudaDevice::available_memory() const {
  size_t free_bytes = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) return 0;
  const auto usable = static_cast<size_t>(static_cast<double>(total) * options_.memory_utilization);
  const size_t used = total - free_bytes;
  return usable > used ? usable - used : 0;
}

// All but what activations and the libraries take, which come after it.
size_t CudaDevice::cache_budget() const {
  constexpr size_t kForOthers = size_t{3} << 30;
  const size_t available = available_memory();
  return available > 2 * kForOthers ? available - kForOthers : available / 2;
}

Status CudaDevice::grow(Pinned& pinned, size_t bytes) {
  if (pinned.bytes >= bytes) return Status();
  release(pinned);
  TRY(check(cudaHostAlloc(&pinned.data, bytes, cudaHostAllocDefault), "pinned memory"));
  cudaEvent_t event = nullptr;
  TRY(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
  pinned.copied = event;
  pinned.bytes = bytes;
  return Status();
}

void CudaDevice::release(Pinned& pinned) {
  if (pinned.copied != nullptr) {
    cudaEventSynchronize(static_cast<cudaEvent_t>(pinned.copied));
    cudaEventDestroy(static_cast<cudaEvent_t>(pinned.copied));
  }
  if (pinned.data != nullptr) cudaFreeHost(pinned.data);
  pinned = {};
}

ThreadPool& CudaDevice::copiers() {
  if (copiers_ == nullptr) {
    copiers_ = std::make_unique<ThreadPool>(std::min(kUploadThreads, default_thread_count()));
  }
  return *copiers_;
}

// Through pinned memory, piece by piece: the host fills one piece while the card reads the other.
Status CudaDevice::upload(void* to, const void* from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    Pinned& piece = uploads_[next_upload_ ^= 1];
    TRY(grow(piece, kUploadPiece));
    auto* event = static_cast<cudaEvent_t>(piece.copied);
    TRY(check(cudaEventSynchronize(event), "an upload"));
    const size_t count = std::min(piece.bytes, bytes - done);
    const char* source = static_cast<const char*>(from) + done;
    const auto slices = static_cast<int64_t>((count + kUploadSlice - 1) / kUploadSlice);
    copiers().parallel_for(slices, [&](int64_t slice, int) {
      const size_t begin = static_cast<size_t>(slice) * kUploadSlice;
      std::memcpy(static_cast<char*>(piece.data) + begin, source + begin,
                  std::min(kUploadSlice, count - begin));
    });
    TRY(check(cudaMemcpyAsync(static_cast<char*>(to) + done, piece.data, count,
                              cudaMemcpyHostToDevice, stream_),
              "an upload"));
    TRY(check(cudaEventRecord(event, stream_), "an upload"));
    done += count;
  }
  return Status();
}

Status CudaDevice::download(void* to, const void* from, size_t bytes) {
  TRY(check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "a download"));
  return check(cudaStreamSynchronize(stream_), "waiting for the card");
}

const void* CudaDevice::stage(StageSlot slot, const void* host, size_t bytes) {
  Staged& staged = staged_[static_cast<size_t>(slot)];
  const size_t room = std::max<size_t>(bytes * 2, size_t{1} << 20);
  if (staged.bytes < bytes) {
    cudaStreamSynchronize(stream_);
    if (staged.device != nullptr) cudaFree(staged.device);
    const Status made = check(cudaMalloc(&staged.device, room), "memory for a step's input");
    CHECK(made.ok()) << made.message();
    staged.bytes = room;
    stage_moves_ += 1;
  }
  Pinned& pinned = staged.pinned[staged.next ^= 1];
  const Status grown = grow(pinned, staged.bytes);
  CHECK(grown.ok()) << grown.message();
  auto* event = static_cast<cudaEvent_t>(pinned.copied);
  cudaEventSynchronize(event);
  std::memcpy(pinned.data, host, bytes);
  cudaMemcpyAsync(staged.device, pinned.data, bytes, cudaMemcpyHostToDevice, stream_);
  cudaEventRecord(event, stream_);
  return staged.device;
}

void CudaDevice::begin_timing() { cudaEventRecord(static_cast<cudaEvent_t>(timing_[0]), stream_); }

int64_t CudaDevice::end_timing_ns() {
  auto* end = static_cast<cudaEvent_t>(timing_[1]);
  cudaEventRecord(end, stream_);
  cudaEventSynchronize(end);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(timing_[0]), end);
  return static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
}

std::unique_ptr<StepRecorder> CudaDevice::make_recorder() {
  return std::make_unique<GraphRecorder>(*this);
}

}  // namespace tinyvllm
