#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/cuda/check.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/graph_recorder.h"
#include "device/cuda/probe.h"

namespace tinyvllm {
namespace {

constexpr int64_t kMarks = 8192;  // a step with every op watched has some hundred

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
  TRY(check_kernels(properties.name, properties.major, properties.minor));
  TRY(check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"));
  memory_ = std::make_unique<CardMemory>(
      stream_, CardMemory::Limits{options_.memory_utilization, !options_.separate_buffers});
  uploader_ = std::make_unique<Uploader>(stream_);
  scratch_ = std::make_unique<UploadScratch>(stream_, *memory_, *uploader_);
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
  for (Pinned& pinned : staged_.pinned) release(pinned);
  if (staged_.device != nullptr) memory_->free(staged_.device);
  if (scratch_ != nullptr) release_scratch();
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

Status CudaDevice::expect_weights(const ExpectedWeights& expected) {
  settle();
  memory_->drop_expected();
  TRY(memory_->check_room(expected.least_bytes, "the weights"));
  is_expecting_ = true;
  uploader_->foresee(expected.order);
  beside_ = std::thread([this, expected] {
    const bool is_there = memory_->expect(expected.bytes);
    // A failure is met again when it is needed.
    if (is_there && expected.pack) (void)scratch_->prepare();
  });
  return Status();
}

void CudaDevice::settle() const {
  if (beside_.joinable()) beside_.join();
}

Result<Buffer> CudaDevice::allocate(size_t bytes, const std::string& what) {
  if (bytes == 0) return Buffer();
  TRY_ASSIGN(void* const data, judged(memory_->allocate(bytes, what)));
  return Buffer(this, data, bytes);
}

void CudaDevice::free(void* data, size_t /*bytes*/) {
  stream();  // nothing is on its way there
  memory_->free(data);
}

CUstream_st* CudaDevice::stream() {
  if (is_uploading_) wait_for_weights(nullptr);
  return stream_;
}

void CudaDevice::wait_for_weights(const Uploader::News& news) {
  if (!std::exchange(is_uploading_, false)) return;
  if (const Status sent = judged(uploader_->drain(0, news)); !sent.ok()) fail(sent.message());
}

Status CudaDevice::upload_weights(void* to, const void* from, size_t bytes, Uploader::Then then) {
  settle();
  if (memory_->take_clearing()) TRY(judged(uploader_->go_behind_ops()));
  is_uploading_ = true;
  scratch_->count_upload();
  return judged(uploader_->post(to, memory_->region_of(to), from, bytes, std::move(then)));
}

void CudaDevice::forget_weights() {
  uploader_->forget();
  if (!is_expecting_) return;
  stream();  // those of a model that was given up half-way
  release_scratch();
}

Result<void*> CudaDevice::scratch(size_t bytes) {
  settle();
  return judged(scratch_->take(bytes));
}

void CudaDevice::release_scratch() {
  is_expecting_ = false;
  settle();
  memory_->drop_expected();
  uploader_->rest();
  beside_ = std::thread([this] { scratch_->release(); });
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

Status CudaDevice::enqueued() {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return Status();
  return judged(error(hardware_, " failed: ", cudaGetErrorString(status)));
}

Status CudaDevice::health() const {
  const std::scoped_lock lock(fault_mutex_);
  if (fault_.empty()) return Status();
  return error(hardware_, " failed: ", fault_);
}

size_t CudaDevice::available_memory() const { return memory_->available(); }

// All but what comes after it: activations, graphs, and kernels that are loaded when they are first
// used.
size_t CudaDevice::cache_budget(size_t activations) const {
  constexpr size_t kForOthers = size_t{1} << 30;
  settle();
  const size_t available = available_memory();
  const size_t left = available - std::min(available, activations);
  return left - std::min(kForOthers, left / 4);
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

Status CudaDevice::make_room(size_t bytes) {
  TRY(check(cudaStreamSynchronize(stream_), "waiting for the card"));
  if (staged_.device != nullptr) memory_->free_idle(staged_.device);
  staged_.device = nullptr;
  staged_.bytes = 0;
  TRY_ASSIGN(staged_.device, memory_->allocate_as_it_is(bytes, "a step's input"));
  stage_moves_ += 1;
  for (Pinned& pinned : staged_.pinned) TRY(grow(pinned, bytes));
  staged_.bytes = bytes;
  return Status();
}

Result<const void*> CudaDevice::stage(const void* host, size_t bytes) {
  TRY(judged(send(host, bytes)));
  return staged_.device;
}

Status CudaDevice::reserve_stage(size_t bytes) {
  return staged_.bytes < bytes ? judged(make_room(bytes)) : Status();
}

Status CudaDevice::send(const void* host, size_t bytes) {
  if (staged_.bytes < bytes) TRY(make_room(bytes * 2));
  Pinned& pinned = staged_.pinned[staged_.next ^= 1];
  auto* event = static_cast<cudaEvent_t>(pinned.copied);
  TRY(check(cudaEventSynchronize(event), "a step's input"));
  std::memcpy(pinned.data, host, bytes);
  TRY(check(cudaMemcpyAsync(staged_.device, pinned.data, bytes, cudaMemcpyHostToDevice, stream_),
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
