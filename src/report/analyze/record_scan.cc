#include "report/analyze/record_scan.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace tinyvllm {
namespace {

constexpr int64_t kBlock = 1 << 20;
constexpr size_t kLongestLine = size_t{64} << 20;  // what is longer is broken, and read past

// Cuts what was read into lines and counts what they were.
class Lines {
 public:
  Lines(int64_t begin, int64_t end, const LogFile::Visit& visit)
      : end_(end), visit_(visit), at_(begin) {}

  // Whether lines that begin in the range may follow. `buffer` holds `held` bytes; those of a line
  // that is not complete yet are moved to its front.
  bool take(std::vector<char>& buffer, size_t& held, bool last) {
    size_t from = 0;
    while (from < held && at_ < end_) {
      const char* newline =
          static_cast<const char*>(std::memchr(buffer.data() + from, '\n', held - from));
      if (newline == nullptr && !last) break;
      const size_t to = newline == nullptr ? held : static_cast<size_t>(newline - buffer.data());
      line({buffer.data() + from, to - from}, newline != nullptr);
      const size_t next = newline == nullptr ? to : to + 1;
      at_ += static_cast<int64_t>(next - from);
      from = next;
    }
    std::memmove(buffer.data(), buffer.data() + from, held - from);
    held -= from;
    if (held > kLongestLine) {
      at_ += static_cast<int64_t>(held);
      held = 0;
      if (!skipping_) count_broken(at_, false);
      skipping_ = true;
    }
    return at_ < end_;
  }

  const ScanCounts& counts() const { return counts_; }

 private:
  void line(std::string_view text, bool ended) {
    if (skipping_) {
      skipping_ = false;
      return;
    }
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    if (text.empty()) return;
    const Record* record = parser_.parse(text);
    if (record == nullptr) return count_broken(at_, !ended);
    ++counts_.lines;
    visit_(*record);
  }

  void count_broken(int64_t at, bool cut_off) {
    ++counts_.lines, ++counts_.broken;
    if (counts_.first_broken < 0) counts_.first_broken = at;
    counts_.truncated_end = cut_off;
  }

  const int64_t end_;
  const LogFile::Visit& visit_;
  int64_t at_;
  bool skipping_ = false;  // inside a line that is too long
  RecordParser parser_;
  ScanCounts counts_;
};

}  // namespace

void ScanCounts::merge(const ScanCounts& later) {
  lines += later.lines;
  broken += later.broken;
  if (first_broken < 0) first_broken = later.first_broken;
  truncated_end = later.truncated_end;
}

Result<LogFile> LogFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return error(printable(path, 4096), ": ", std::strerror(errno));
  struct stat info {};
  LogFile file(fd, 0, false);
  if (fstat(fd, &info) != 0) return error(printable(path, 4096), ": ", std::strerror(errno));
  if (S_ISDIR(info.st_mode)) {
    return error(printable(path, 4096), ": expected a trace log, found a folder");
  }
  file.seekable_ = S_ISREG(info.st_mode);
  file.size_ = file.seekable_ ? info.st_size : std::numeric_limits<int64_t>::max();
  return file;
}

LogFile::~LogFile() {
  if (fd_ >= 0) ::close(fd_);
}

LogFile::LogFile(LogFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), size_(other.size_), seekable_(other.seekable_) {}

std::vector<int64_t> LogFile::split(int parts) const {
  std::vector<int64_t> starts = {0};
  std::vector<char> block(kBlock);
  for (int part = 1; seekable_ && part < parts; ++part) {
    int64_t at = std::max(starts.back(), size_ / parts * part);
    for (bool found = false; !found && at < size_;) {
      const ssize_t got = pread(fd_, block.data(), block.size(), at);
      if (got <= 0) break;
      const void* newline = std::memchr(block.data(), '\n', static_cast<size_t>(got));
      found = newline != nullptr;
      at += found ? static_cast<const char*>(newline) - block.data() + 1 : got;
    }
    starts.push_back(std::min(at, size_));
  }
  starts.push_back(size_);
  return starts;
}

Result<ScanCounts> LogFile::scan(int64_t begin, int64_t end, const Visit& visit,
                                 const Done& done) const {
  const size_t block = static_cast<size_t>(std::clamp<int64_t>(end - begin, 1, kBlock));
  std::vector<char> buffer(block + RecordParser::kPadding);
  size_t held = 0;
  int64_t offset = begin;
  Lines lines(begin, end, visit);
  for (bool more = begin < end; more;) {
    if (buffer.size() < held + block + RecordParser::kPadding) {
      buffer.resize(2 * held + block + RecordParser::kPadding);
    }
    const ssize_t got = seekable_ ? pread(fd_, buffer.data() + held, block, offset)
                                  : read(fd_, buffer.data() + held, block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error("reading the log: ", std::strerror(errno));
    offset += got;
    held += static_cast<size_t>(got);
    if (done && got > 0) done(got);
    more = lines.take(buffer, held, got == 0) && got > 0;
  }
  return lines.counts();
}

}  // namespace tinyvllm
