#include "device/cuda/card_memory.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "device/cuda/check.h"

namespace tinyvllm {
namespace {

constexpr size_t kRegionBytes = size_t{256} << 20;
constexpr size_t kSmall = size_t{64} << 10;  // a norm, a bias
constexpr size_t kAlignment = 256;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::string human(size_t bytes) { return human_bytes(static_cast<double>(bytes)); }

void* take(size_t bytes, cudaError_t* status) {
  void* data = nullptr;
  *status = cudaMalloc(&data, bytes);
  if (*status == cudaSuccess) return data;
  cudaGetLastError();  // so that it is not taken for the next call's
  return nullptr;
}

}  // namespace

size_t CardMemory::available() const {
  size_t free_bytes = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) return 0;
  const auto usable = static_cast<size_t>(static_cast<double>(total) * limits_.utilization);
  const size_t used = total - free_bytes;
  return usable > used ? usable - used : 0;
}

Status CardMemory::check_room(size_t bytes, const std::string& what) const {
  const size_t room = available();
  if (bytes <= room) return Status();
  size_t free_bytes = 0;
  size_t total = 0;
  TRY(check(cudaMemGetInfo(&free_bytes, &total), "asking for its memory"));
  return error("out of device memory: ", what, " take ", human(bytes), ", and of the card's ",
               human(total), " --gpu-memory-utilization ", limits_.utilization, " leaves ",
               human(room), " free; ",
               bytes <= free_bytes ? "a larger one, a smaller model or a type of fewer bits"
                                   : "a smaller model or a type of fewer bits",
               " would help");
}

Result<void*> CardMemory::allocate(size_t bytes, const std::string& what) {
  if (void* piece = limits_.is_cut ? cut(bytes) : nullptr) return piece;
  TRY_ASSIGN(void* const data, allocate_as_it_is(bytes, what));
  std::unique_lock lock(mutex_);
  const Status cleared = clear(data, bytes);
  lock.unlock();
  if (cleared.ok()) return data;
  free_idle(data);
  return cleared.error();
}

Result<void*> CardMemory::allocate_as_it_is(size_t bytes, const std::string& what) {
  cudaError_t status = cudaSuccess;
  void* const data = take(bytes, &status);
  if (data != nullptr) {
    const std::scoped_lock lock(mutex_);
    regions_.push_back({static_cast<char*>(data), bytes, bytes, 0, 1});
    return data;
  }
  if (status != cudaErrorMemoryAllocation) TRY(check(status, "memory"));
  return error("out of device memory: ", human(bytes), " for ", what, ", ", human(available()),
               " free");
}

void CardMemory::free(void* data) { give_back(data, /*is_idle=*/false); }

void CardMemory::free_idle(void* data) { give_back(data, /*is_idle=*/true); }

void CardMemory::give_back(void* data, bool is_idle) {
  const std::scoped_lock lock(mutex_);
  const auto region = find(data);
  if (--region->pieces > 0) return;
  if (region->begin == cut_) cut_ = nullptr;
  if (!is_idle) cudaStreamSynchronize(ops_);
  cudaFree(region->begin);
  regions_.erase(region);
}

bool CardMemory::expect(size_t bytes) {
  const std::scoped_lock lock(mutex_);
  return limits_.is_cut && bytes > 0 && add_to_cut(bytes);
}

void CardMemory::drop_expected() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(regions_, [&](const Region& region) {
    if (region.pieces > 0) return false;
    if (region.begin == cut_) cut_ = nullptr;
    cudaFree(region.begin);
    return true;
  });
}

bool CardMemory::take_clearing() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(is_clearing_, false);
}

const void* CardMemory::region_of(const void* data) {
  const std::scoped_lock lock(mutex_);
  return find(data)->begin;
}

// Null: too large to be cut, or there is no memory for another region.
void* CardMemory::cut(size_t bytes) {
  const size_t size = aligned(bytes);
  const std::scoped_lock lock(mutex_);
  const auto has_room = [&] {
    if (cut_ == nullptr) return false;
    const Region& region = *find(cut_);
    return region.bytes - region.used - region.used_at_end >= size;
  };
  if (!has_room() && (size > kRegionBytes / 2 || !add_to_cut(kRegionBytes))) return nullptr;
  Region& region = *find(cut_);
  region.pieces += 1;
  if (size < kSmall) return region.begin + region.bytes - (region.used_at_end += size);
  return region.begin + std::exchange(region.used, region.used + size);
}

bool CardMemory::add_to_cut(size_t wanted) {
  const size_t bytes = aligned(wanted);
  cudaError_t status = cudaSuccess;
  void* const data = take(bytes, &status);
  if (data == nullptr) return false;
  if (!clear(data, bytes).ok()) {
    cudaFree(data);
    return false;
  }
  cut_ = static_cast<char*>(data);
  regions_.push_back({cut_, bytes, 0, 0, 0});
  return true;
}

Status CardMemory::clear(void* data, size_t bytes) {
  is_clearing_ = true;
  return check(cudaMemsetAsync(data, 0, bytes, ops_), "clearing memory");
}

std::vector<CardMemory::Region>::iterator CardMemory::find(const void* data) {
  const auto found = std::find_if(regions_.begin(), regions_.end(), [&](const Region& region) {
    return data >= region.begin && data < region.begin + region.bytes;
  });
  CHECK(found != regions_.end());
  return found;
}

}  // namespace tinyvllm
