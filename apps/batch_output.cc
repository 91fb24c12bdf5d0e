#include "apps/batch_output.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <simdjson.h>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include "apps/line_reader.h"

namespace tinyvllm {
namespace {

constexpr uint64_t kFnvStart = 0xcbf29ce484222325;
constexpr uint64_t kFnvPrime = 0x100000001b3;

uint64_t fnv(uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * kFnvPrime;
  return hash;
}

bool parse_print(std::string_view text, uint64_t& print) {
  const char* end = text.data() + text.size();
  return text.size() == 16 && std::from_chars(text.data(), end, print, 16).ptr == end && print != 0;
}

// Whether this could be the beginning of a line of ours. Somebody's notes are not to be cut off.
bool looks_torn(std::string_view text) {
  constexpr std::string_view kBeginning = "{\"index\":";
  return text.substr(0, kBeginning.size()) == kBeginning.substr(0, text.size());
}

}  // namespace

std::string fingerprint(const std::string& settings, const std::string& line) {
  const uint64_t hash = fnv(fnv(fnv(kFnvStart, settings), std::string_view("\0", 1)), line);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(hash == 0 ? 1 : hash));
  return text;
}

Result<BatchOutput> BatchOutput::open(const std::string& path, int64_t input_lines) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return error("--output '", printable(path, 4096), "': ", std::strerror(errno));
  BatchOutput output(path, fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return error("--output '", printable(path, 4096), "': another process is writing it");
  }
  TRY(output.read_lines(input_lines));
  return output;
}

BatchOutput::BatchOutput(BatchOutput&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      kept_(other.kept_),
      prints_(std::move(other.prints_)) {}

BatchOutput::~BatchOutput() {
  if (fd_ >= 0) close(fd_);
}

Error BatchOutput::wrong(int64_t number, const std::string& what) const {
  return error("--output '", printable(path_, 4096), "': line ", number, " ", what,
               "; give the name of a new file, or remove this one");
}

Status BatchOutput::read_lines(int64_t input_lines) {
  TRY_ASSIGN(LineReader reader, LineReader::open(path_));
  prints_.assign(static_cast<size_t>(input_lines), 0);
  simdjson::dom::parser parser;
  LineReader::Line line;
  for (int64_t number = 1;; ++number) {
    TRY_ASSIGN(const bool more, reader.next(line));
    if (!more) break;
    if (!line.ended && looks_torn(line.text)) break;
    simdjson::dom::element root;
    int64_t index = -1;
    std::string_view print_text;
    uint64_t print = 0;
    if (line.too_long || !line.ended ||
        parser.parse(simdjson::padded_string(line.text)).get(root) != simdjson::SUCCESS ||
        root["index"].get(index) != simdjson::SUCCESS ||
        root["input"].get(print_text) != simdjson::SUCCESS || !parse_print(print_text, print)) {
      return wrong(number, "is none that run --prompts wrote");
    }
    if (index < 0 || index >= input_lines) {
      return wrong(number, str_cat("answers line ", index, " of an input of other length"));
    }
    uint64_t& known = prints_[static_cast<size_t>(index)];
    if (known != 0) return wrong(number, str_cat("answers line ", index, " a second time"));
    known = print;
    kept_ += 1;
    size_ = line.end;
  }
  if (ftruncate(fd_, size_) != 0 || lseek(fd_, size_, SEEK_SET) < 0) {
    return error("--output '", printable(path_, 4096), "': ", std::strerror(errno));
  }
  return Status();
}

Result<bool> BatchOutput::has(int64_t index, const std::string& print) const {
  const uint64_t known = prints_[static_cast<size_t>(index)];
  if (known == 0) return false;
  uint64_t expected = 0;
  parse_print(print, expected);
  if (known == expected) return true;
  return error("--output '", printable(path_, 4096), "' answers line ", index,
               " of another input, or with another model or other flags; give the name of a new "
               "file, or remove this one");
}

Status BatchOutput::append(std::string line) {
  line += '\n';
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = write(fd_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int problem = errno;
      // Half a line helps nobody; if this fails too, the next run cuts it off.
      if (ftruncate(fd_, size_) != 0) return error("'", printable(path_, 4096), "' is torn");
      return error("--output '", printable(path_, 4096), "': ", std::strerror(problem));
    }
    written += static_cast<size_t>(count);
  }
  size_ += static_cast<int64_t>(written);
  return Status();
}

}  // namespace tinyvllm
