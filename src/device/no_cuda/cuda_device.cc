// A build without CUDA: asking for a card is an error in words, and nobody ever holds one.
#include "device/cuda/cuda_device.h"

#include "device/cuda/cublaslt.h"

namespace tinyvllm {

CublasLt::~CublasLt() = default;
Uploader::~Uploader() = default;
struct CublasLt::Library {};
struct CublasLt::Plan {};

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(const CudaOptions& /*options*/) {
  return error("this build has no CUDA; build with nvcc found, or use --device cpu");
}
CudaDevice::CudaDevice(const CudaOptions& options) : options_(options) {}
CudaDevice::~CudaDevice() = default;
DeviceSpec CudaDevice::spec() const { return {}; }
Result<Buffer> CudaDevice::allocate(size_t, const std::string&) { return Buffer(); }
void CudaDevice::free(void*, size_t) {}
size_t CudaDevice::available_memory() const { return 0; }
Status CudaDevice::upload(void*, const void*, size_t) { return Status(); }
Status CudaDevice::download(void*, const void*, size_t) { return Status(); }
void CudaDevice::wait_for_weights(const Uploader::News&) {}
void CudaDevice::forget_weights() {}
Result<const void*> CudaDevice::stage(const void*, size_t) { return nullptr; }
Status CudaDevice::reserve_stage(size_t) { return Status(); }
Status CudaDevice::enqueued() { return Status(); }
Status CudaDevice::health() const { return Status(); }
std::unique_ptr<StepRecorder> CudaDevice::make_recorder() { return nullptr; }
size_t CudaDevice::cache_budget(size_t) const { return 0; }
int64_t CudaDevice::mark() { return -1; }
int64_t CudaDevice::ns_between(int64_t, int64_t) { return 0; }

}  // namespace tinyvllm
