#include "io/new_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace tinyvllm {
namespace {

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Makes a rename last through a power cut. Not every filesystem can; the file is sound either way.
void sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

Error NewFile::failed(const char* what) const {
  const int code = errno;
  if (code != ENOSPC && code != EDQUOT) {
    return error(printable(path_, 4096), ": cannot ", what, ": ", std::strerror(code));
  }
  std::error_code ignored;
  const auto space = std::filesystem::space(folder_of(path_), ignored);
  return error(printable(path_, 4096), ": cannot ", what, ": ", std::strerror(code), " (",
               human_bytes(static_cast<double>(space.available)), " are free)");
}

Result<std::unique_ptr<NewFile>> NewFile::create(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return error(printable(path, 4096), " is not a regular file, so it is not replaced by one");
  }
  const std::string temporary = str_cat(path, ".tmp-", ::getpid());
  constexpr mode_t kMode = 0644;
  bool has_name = false;
  int fd = ::open(folder_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    fd = ::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
    has_name = true;
  }
  if (fd < 0) {
    return error(printable(path, 4096), ": cannot create a file in ",
                 printable(folder_of(path), 4096), ": ", std::strerror(errno));
  }
  return std::unique_ptr<NewFile>(new NewFile(path, temporary, fd, has_name));
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (has_name_) ::unlink(temporary_.c_str());
}

Status NewFile::reserve(uint64_t bytes) {
  if (bytes == 0 || ::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0) {
    return Status();
  }
  if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) return Status();  // it cannot promise
  return failed(str_cat("reserve ", human_bytes(static_cast<double>(bytes))).c_str());
}

Status NewFile::write(const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd_, from, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      return failed("write");
    }
    from += written;
    bytes -= static_cast<size_t>(written);
  }
  return Status();
}

Status NewFile::commit() {
  if (::fsync(fd_) != 0) return failed("flush to the disk");
  if (!has_name_) {
    const std::string open_file = str_cat("/proc/self/fd/", fd_);
    if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) !=
        0) {
      return failed("give the file a name");
    }
    has_name_ = true;
  }
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) return failed("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("rename into place");
  has_name_ = false;
  sync_folder(folder_of(path_));
  return Status();
}

}  // namespace tinyvllm
