#include "device/device.h"

#include <utility>

namespace tinyvllm {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->free(data_, bytes_);
}

}  // namespace tinyvllm
