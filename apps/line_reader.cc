#include "apps/line_reader.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace tinyvllm {

Result<LineReader> LineReader::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return error("'", printable(path, 4096), "': ", std::strerror(errno));
  return LineReader(path, fd);
}

LineReader::LineReader(LineReader&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      at_(other.at_),
      filled_(other.filled_),
      offset_(other.offset_) {}

LineReader::~LineReader() {
  if (fd_ >= 0) close(fd_);
}

Result<bool> LineReader::next(Line& line) {
  line = Line();
  line.end = offset_;
  for (;;) {
    if (at_ == filled_) {
      const ssize_t count = read(fd_, buffer_.data(), buffer_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return error("'", printable(path_, 4096), "': ", std::strerror(errno));
      if (count == 0) {
        const bool any = offset_ > line.end;
        line.end = offset_;
        return any;
      }
      at_ = 0;
      filled_ = static_cast<size_t>(count);
    }
    const char* begin = buffer_.data() + at_;
    const auto* newline = static_cast<const char*>(std::memchr(begin, '\n', filled_ - at_));
    const size_t count = newline != nullptr ? static_cast<size_t>(newline - begin) : filled_ - at_;
    if (line.text.size() + count > kLongestLine) {
      line.too_long = true;
    } else if (!line.too_long) {
      line.text.append(begin, count);
    }
    const size_t taken = count + (newline != nullptr ? 1 : 0);
    at_ += taken;
    offset_ += static_cast<int64_t>(taken);
    if (newline == nullptr) continue;
    line.ended = true;
    line.end = offset_;
    if (line.text.ends_with('\r')) line.text.pop_back();
    return true;
  }
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r") == std::string::npos;
}

}  // namespace tinyvllm
