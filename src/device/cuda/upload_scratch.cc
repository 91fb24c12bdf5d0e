#include "device/cuda/upload_scratch.h"

#include <algorithm>

#include "device/cuda/check.h"

namespace tinyvllm {
namespace {

constexpr size_t kAreaBytes = size_t{128} << 20;
constexpr size_t kAlignment = 256;

}  // namespace

Status UploadScratch::prepare() {
  for (Area& area : areas_) {
    if (area.data == nullptr) TRY(grow(area, kAreaBytes));
  }
  return Status();
}

Result<void*> UploadScratch::take(size_t bytes) {
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (areas_[filled_].bytes - areas_[filled_].used < size) {
    TRY(fill_next());
    if (areas_[filled_].bytes < size) TRY(grow(areas_[filled_], std::max(size, kAreaBytes)));
  }
  Area& area = areas_[filled_];
  void* const place = area.data + area.used;
  area.used += size;
  return place;
}

Status UploadScratch::fill_next() {
  TRY(uploader_.drain(areas_[filled_].uploads));
  Area& arrived = areas_[(filled_ + 2) % 3];
  if (arrived.free == nullptr) {
    TRY(check(cudaEventCreateWithFlags(&arrived.free, cudaEventDisableTiming), "an event"));
  }
  TRY(check(cudaEventRecord(arrived.free, ops_), "an upload"));
  filled_ = (filled_ + 1) % 3;
  Area& next = areas_[filled_];
  next.used = next.uploads = 0;
  return next.free == nullptr ? Status() : uploader_.go_behind(next.free);
}

Status UploadScratch::grow(Area& area, size_t bytes) {
  if (area.data != nullptr) memory_.free(area.data);
  area.data = nullptr;
  area.bytes = 0;
  TRY_ASSIGN(void* const data, memory_.allocate_as_it_is(bytes, "weights on their way"));
  area.data = static_cast<char*>(data);
  area.bytes = bytes;
  return Status();
}

void UploadScratch::release() {
  for (const Area& area : areas_) {
    if (area.data != nullptr) memory_.free_idle(area.data);
    if (area.free != nullptr) cudaEventDestroy(area.free);
  }
  areas_ = {};
}

}  // namespace tinyvllm
