// Runs over the lines of a log and hands each record on. Reads in blocks, so that a log of any size
// takes the memory of one block; a line that is no record is counted and passed over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/analyze/record.h"

namespace tinyvllm {

struct ScanCounts {
  int64_t lines = 0;           // that hold anything
  int64_t broken = 0;          // of these, no record
  int64_t first_broken = -1;   // byte in the file where the first of them begins
  bool truncated_end = false;  // the last line is broken and has no newline: the writer was cut off

  void merge(const ScanCounts& later);
};

class LogFile {
 public:
  static Result<LogFile> open(const std::string& path);
  ~LogFile();
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&&) = delete;

  int64_t size() const { return size_; }
  bool seekable() const { return seekable_; }  // a pipe is not, and is read to its end once

  // Where about equal parts of the file begin, each at the start of a line, and where the last
  // ends.
  std::vector<int64_t> split(int parts) const;

  // Every record of the lines that begin in [begin, end); a line begins at `begin`. `done` hears of
  // bytes as they are read. May run on several threads at once, on different ranges.
  using Visit = std::function<void(const Record&)>;
  using Done = std::function<void(int64_t bytes)>;
  Result<ScanCounts> scan(int64_t begin, int64_t end, const Visit& visit,
                          const Done& done = {}) const;

 private:
  LogFile(int fd, int64_t size, bool seekable) : fd_(fd), size_(size), seekable_(seekable) {}

  int fd_;
  int64_t size_;
  bool seekable_;
};

}  // namespace tinyvllm
