#include "io/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tinyvllm {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

class Descriptor {
 public:
  // Non-blocking, because opening a pipe that nobody writes to would otherwise wait for ever.
  explicit Descriptor(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  const Descriptor file(path);
  if (file.get() < 0) return error(printable(path, 4096), ": cannot open: ", std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return error(printable(path, 4096), ": cannot stat: ", std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return error(printable(path, 4096), " is ", kind_of(info.st_mode), "; expected a regular file");
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::unique_ptr<MappedFile>(new MappedFile(path, nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    return error(printable(path, 4096), ": cannot map ", size, " bytes: ", std::strerror(errno));
  }
  return std::unique_ptr<MappedFile>(new MappedFile(path, static_cast<const char*>(data), size));
}

void MappedFile::prefer_huge_pages() const {
  // Advice: a kernel without huge pages for files says no, and nothing is lost.
  if (data_ != nullptr) (void)::madvise(const_cast<char*>(data_), size_, MADV_HUGEPAGE);
}

Result<std::unique_ptr<MappedFile>> MappedFile::in_memory(const std::string& name, uint64_t size,
                                                          char** writable) {
  CHECK(size > 0) << "memory for an empty file";
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return error(printable(name), ": out of memory: ", human_bytes(static_cast<double>(size)),
                 " for its weights");
  }
  ::madvise(data, size, MADV_HUGEPAGE);  // fewer faults while it is filled; a hint, may fail
  *writable = static_cast<char*>(data);
  return std::unique_ptr<MappedFile>(new MappedFile(name, *writable, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace tinyvllm
