// Text that is written at its end, by whoever looks after room: a std::string would clear it first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace tinyvllm {

class TextBuffer {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {data_.get(), size_}; }
  void clear() { size_ = 0; }

  char* end() { return data_.get() + size_; }
  char* limit() { return data_.get() + capacity_; }  // there is room up to here
  void set_end(const char* end) { size_ = static_cast<size_t>(end - data_.get()); }

  // So that there is room for so many bytes more.
  void grow(size_t bytes) {
    const size_t capacity = std::max(size_ + bytes, 2 * capacity_ + 256);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = capacity;
  }

 private:
  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace tinyvllm
