// A file mapped read-only, or memory that stands for one. Tensor bytes are read where the kernel
// keeps them; nothing is copied. The file must not shrink while it is mapped: reading a page that
// is gone is a SIGBUS, as for every program that maps files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tinyvllm {

class MappedFile {
 public:
  // Regular files only: a folder, pipe, socket or device is refused by its kind, without blocking.
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path);
  // Zeroed memory of its own, which the caller fills through `writable` before anybody reads.
  static Result<std::unique_ptr<MappedFile>> in_memory(const std::string& name, uint64_t size,
                                                       char** writable);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // For weights: asks for 2 MiB pages. On ext4 under Linux 6.18 (`tinyvllm bench files`) the first
  // read of a file took 20–30% less time, and reading it through a new map 25% less. Readahead
  // (MADV_WILLNEED) gave nothing beside what the kernel does for a reader that goes front to back,
  // and would push out other pages for a file larger than memory.
  void prefer_huge_pages() const;

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {data_, size_}; }
  uint64_t size() const { return size_; }

 private:
  MappedFile(std::string path, const char* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const char* data_;  // null for an empty file, which cannot be mapped
  size_t size_;
};

}  // namespace tinyvllm
