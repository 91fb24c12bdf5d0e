// Lines of a file that may be larger than memory: one at a time, and none longer than a limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tinyvllm {

class LineReader {
 public:
  static constexpr size_t kLongestLine = size_t{64} << 20;

  static Result<LineReader> open(const std::string& path);
  ~LineReader();
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;

  struct Line {
    std::string text;       // without its newline
    int64_t end = 0;        // where in the file the next one begins
    bool ended = false;     // whether a newline ended it; only the last line may lack one
    bool too_long = false;  // text is only its beginning
  };
  // False at the end of the file.
  Result<bool> next(Line& line);

 private:
  LineReader(std::string path, int fd) : path_(std::move(path)), fd_(fd), buffer_(1 << 20) {}

  std::string path_;
  int fd_;
  std::vector<char> buffer_;
  size_t at_ = 0;
  size_t filled_ = 0;
  int64_t offset_ = 0;  // of buffer_[at_] in the file
};

bool is_blank(const std::string& text);

}  // namespace tinyvllm
