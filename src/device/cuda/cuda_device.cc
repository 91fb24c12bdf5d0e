#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <cuda_runtime_api.h>
#include <utility>

#include "base/log.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/graph_recorder.h"

namespace tinyvllm {
namespace {

constexpr size_t kRegionBytes = size_t{256} << 20;
constexpr size_t kScratchBytes = size_t{128} << 20;
constexpr size_t kAlignment = 256;
constexpr int64_t kMarks = 8192;  // a step with every op watched has some hundred

Status check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return Status();
  return error("CUDA, ", what, ": ", cudaGetErrorString(status));
}

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

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
  uploader_ = std::make_unique<Uploader>(stream_);
  void* first = nullptr;
  TRY(check(cudaMalloc(&first, sizeof(uint64_t)), "8 bytes"));
  first_not_finite_ = static_cast<uint64_t*>(first);
  TRY(check(cudaMemsetAsync(first, 0xFF, sizeof(uint64_t), stream_), "clearing memory"));
  TRY_ASSIGN(cublaslt_, CublasLt::open());
  return Status();
}

CudaDevice::CudaDevice(const CudaOptions& options) : options_(options) {}

CudaDevice::~CudaDevice() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream());
  for (Staged& staged : staged_) {
    for (Pinned& pinned : staged.pinned) release(pinned);
    if (staged.device != nullptr) cudaFree(staged.device);
  }
  if (uploader_ != nullptr) release_scratch();
  settle();
  uploader_.reset();
  if (first_not_finite_ != nullptr) cudaFree(first_not_finite_);
  for (void* event : marks_) cudaEventDestroy(static_cast<cudaEvent_t>(event));
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

// Nobody hears of a failure: the memory is asked for again when it is needed.
void CudaDevice::expect_weights(size_t bytes, bool packs) {
  if (options_.separate_buffers || bytes == 0) return;
  settle();
  drop_unused_regions();
  beside_ = std::thread([this, bytes, packs] {
    {
      const std::scoped_lock lock(regions_mutex_);
      if (!add_region(bytes)) return;
    }
    if (!packs) return;
    for (Scratch& scratch : scratch_) {
      if (scratch.data == nullptr && !grow(scratch, kScratchBytes).ok()) return;
    }
  });
}

void CudaDevice::settle() const {
  if (beside_.joinable()) beside_.join();
}

Result<Buffer> CudaDevice::allocate(size_t bytes, const std::string& what) {
  if (bytes == 0) return Buffer();
  if (void* piece = options_.separate_buffers ? nullptr : cut(bytes)) {
    return Buffer(this, piece, bytes);
  }
  TRY_ASSIGN(void* const data, take(bytes, what));
  TRY(check(cudaMemsetAsync(data, 0, bytes, stream_), "clearing memory"));
  is_clearing_ = true;
  return Buffer(this, data, bytes);
}

Result<void*> CudaDevice::take(size_t bytes, const std::string& what) {
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaSuccess) return data;
  cudaGetLastError();  // so that it is not taken for the next call's
  if (status != cudaErrorMemoryAllocation) TRY(judged(check(status, "memory")));
  return error("out of device memory: ", human(bytes), " for ", what, ", ",
               human(available_memory()), " free");
}

bool CudaDevice::add_region(size_t bytes) {
  void* data = nullptr;
  if (cudaMalloc(&data, bytes) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  cudaMemsetAsync(data, 0, bytes, stream_);
  is_clearing_ = true;
  regions_.push_back({static_cast<char*>(data), bytes, 0, 0});
  return true;
}

// What was expected and did not come.
void CudaDevice::drop_unused_regions() {
  const std::scoped_lock lock(regions_mutex_);
  std::erase_if(regions_, [](const Region& region) {
    return region.pieces == 0 && cudaFree(region.begin) == cudaSuccess;
  });
}

// A piece of a region, zeros; null: too large for one, or there is no memory for another.
void* CudaDevice::cut(size_t bytes) {
  const size_t size = aligned(bytes);
  const std::scoped_lock lock(regions_mutex_);
  if (regions_.empty() || regions_.back().bytes - regions_.back().used < size) {
    if (size > kRegionBytes / 2 || !add_region(kRegionBytes)) return nullptr;
  }
  Region& region = regions_.back();
  void* piece = region.begin + region.used;
  region.used += size;
  region.pieces += 1;
  return piece;
}

void CudaDevice::free(void* data, size_t /*bytes*/) {
  stream();  // nothing is on its way there
  const std::scoped_lock lock(regions_mutex_);
  const auto region = std::find_if(regions_.begin(), regions_.end(), [&](const Region& r) {
    return data >= r.begin && data < r.begin + r.bytes;
  });
  if (region != regions_.end()) {
    if (--region->pieces > 0) return;
    data = region->begin;
    regions_.erase(region);
  }
  cudaStreamSynchronize(stream_);
  cudaFree(data);
}

CUstream_st* CudaDevice::stream() {
  if (is_uploading_) {
    is_uploading_ = false;
    if (const Status sent = judged(uploader_->drain()); !sent.ok()) fail(sent.message());
  }
  return stream_;
}

Status CudaDevice::upload_weights(void* to, const void* from, size_t bytes, Uploader::Then then) {
  if (is_clearing_.exchange(false)) TRY(judged(uploader_->go_behind_ops()));
  is_uploading_ = true;
  scratch_[filled_].uploads += 1;
  return judged(uploader_->post(to, from, bytes, std::move(then)));
}

Result<void*> CudaDevice::scratch(size_t bytes) {
  settle();
  const size_t size = aligned(bytes);
  if (scratch_[filled_].bytes - scratch_[filled_].used < size) {
    TRY(judged(fill_next_scratch()));
    if (scratch_[filled_].bytes < size) {
      TRY(grow(scratch_[filled_], std::max(size, kScratchBytes)));
    }
  }
  Scratch& scratch = scratch_[filled_];
  void* const place = scratch.data + scratch.used;
  scratch.used += size;
  return place;
}

Status CudaDevice::fill_next_scratch() {
  TRY(uploader_->drain(scratch_[filled_].uploads));
  Scratch& arrived = scratch_[(filled_ + 2) % 3];
  if (arrived.free == nullptr) {
    TRY(check(cudaEventCreateWithFlags(&arrived.free, cudaEventDisableTiming), "an event"));
  }
  TRY(check(cudaEventRecord(arrived.free, stream_), "an upload"));
  filled_ = (filled_ + 1) % 3;
  Scratch& next = scratch_[filled_];
  next.used = next.uploads = 0;
  return next.free == nullptr ? Status() : uploader_->go_behind(next.free);
}

Status CudaDevice::grow(Scratch& scratch, size_t bytes) {
  if (scratch.data != nullptr) free(scratch.data, scratch.bytes);
  scratch.data = nullptr;
  scratch.bytes = 0;
  TRY_ASSIGN(void* const data, take(bytes, "weights on their way"));
  scratch.data = static_cast<char*>(data);
  scratch.bytes = bytes;
  return Status();
}

void CudaDevice::release_scratch() {
  settle();
  drop_unused_regions();
  uploader_->rest();
  beside_ = std::thread([used = std::exchange(scratch_, {})] {
    for (const Scratch& scratch : used) {
      if (scratch.data != nullptr) cudaFree(scratch.data);
      if (scratch.free != nullptr) cudaEventDestroy(scratch.free);
    }
  });
}

void CudaDevice::fail(const std::string& why) {
  const std::scoped_lock lock(fault_mutex_);
  if (fault_.empty()) fault_ = why;
}

Status CudaDevice::judged(Status status) {
  if (status.ok()) return status;
  const cudaError_t state = cudaStreamQuery(stream_);
  cudaGetLastError();  // work that is not done yet counts as an error, too
  if (state != cudaSuccess && state != cudaErrorNotReady) fail(cudaGetErrorString(state));
  return status;
}

Status CudaDevice::health() const {
  const std::scoped_lock lock(fault_mutex_);
  if (fault_.empty()) return Status();
  return error(hardware_, " failed: ", fault_);
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
  settle();
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

Status CudaDevice::upload(void* to, const void* from, size_t bytes) {
  // From memory that is not pinned: it has been read when the call returns.
  return judged(
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "an upload"));
}

Status CudaDevice::download(void* to, const void* from, size_t bytes) {
  TRY(judged(
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream()), "a download")));
  return judged(check(cudaStreamSynchronize(stream_), "waiting for the card"));
}

Status CudaDevice::make_room(Staged& staged, size_t bytes) {
  TRY(check(cudaStreamSynchronize(stream_), "waiting for the card"));
  if (staged.device != nullptr) cudaFree(staged.device);
  staged.device = nullptr;
  staged.bytes = 0;
  TRY_ASSIGN(staged.device, take(bytes, "a step's input"));
  staged.bytes = bytes;
  stage_moves_ += 1;
  return Status();
}

Result<const void*> CudaDevice::stage(StageSlot slot, const void* host, size_t bytes) {
  Staged& staged = staged_[static_cast<size_t>(slot)];
  TRY(judged(send(staged, host, bytes)));
  return staged.device;
}

Status CudaDevice::send(Staged& staged, const void* host, size_t bytes) {
  if (staged.bytes < bytes) {
    TRY(make_room(staged, std::max<size_t>(bytes * 2, size_t{1} << 20)));
  }
  Pinned& pinned = staged.pinned[staged.next ^= 1];
  TRY(grow(pinned, staged.bytes));
  auto* event = static_cast<cudaEvent_t>(pinned.copied);
  TRY(check(cudaEventSynchronize(event), "a step's input"));
  std::memcpy(pinned.data, host, bytes);
  TRY(check(cudaMemcpyAsync(staged.device, pinned.data, bytes, cudaMemcpyHostToDevice, stream_),
            "a step's input"));
  return check(cudaEventRecord(event, stream_), "a step's input");
}

int64_t CudaDevice::mark() {
  const auto place = static_cast<size_t>(next_mark_ % kMarks);
  if (place == marks_.size()) {
    cudaEvent_t event = nullptr;
    cudaEventCreate(&event);
    marks_.push_back(event);
  }
  cudaEventRecord(static_cast<cudaEvent_t>(marks_[place]), stream_);
  return next_mark_++;
}

int64_t CudaDevice::ns_between(int64_t begin, int64_t end) {
  if (next_mark_ - begin > kMarks) return 0;  // too many came since
  const auto event = [&](int64_t mark) {
    return static_cast<cudaEvent_t>(marks_[static_cast<size_t>(mark % kMarks)]);
  };
  float milliseconds = 0;
  if (cudaEventSynchronize(event(end)) != cudaSuccess ||
      cudaEventElapsedTime(&milliseconds, event(begin), event(end)) != cudaSuccess) {
    return 0;
  }
  return static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
}

std::unique_ptr<StepRecorder> CudaDevice::make_recorder() {
  return std::make_unique<GraphRecorder>(*this);
}

}  // namespace tinyvllm
