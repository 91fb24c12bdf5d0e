// Replaces the global operator new to see every allocation of this binary; see allocation_meter.h.
#include "allocation_meter.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <vector>

namespace {
size_t largest = 0;
}

void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (size > largest) largest = size;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return operator new(size, std::nothrow);
}
void* operator new[](size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace tinyvllm {

void reset_largest_allocation() { largest = 0; }
size_t largest_allocation() { return largest; }

TEST(AllocationMeter, SeesWhatVectorsTake) {
  reset_largest_allocation();
  const std::vector<int64_t> numbers(100'000);
  EXPECT_EQ(largest_allocation(), numbers.size() * sizeof(int64_t));
}

}  // namespace tinyvllm
