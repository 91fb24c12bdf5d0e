// A file that appears under its name whole or not at all. Until commit() it has no name where the
// filesystem can do that (so even a killed process leaves nothing behind), else a temporary one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace tinyvllm {

class NewFile {
 public:
  // Refuses a path that could only be replaced by mistake: a folder, a device, a pipe.
  static Result<std::unique_ptr<NewFile>> create(const std::string& path);
  ~NewFile();  // what was not committed is gone
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // Takes the space at once, so that a full disk is known before the work is done.
  Status reserve(uint64_t bytes);
  Status write(const void* data, size_t bytes);

  // To the disk, then under the name; a file that was there before is replaced in one step.
  Status commit();

 private:
  NewFile(std::string path, std::string temporary, int fd, bool has_name)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd), has_name_(has_name) {}
  Error failed(const char* what) const;

  const std::string path_;
  const std::string temporary_;  // in the same folder, so that renaming stays on one filesystem
  int fd_;
  bool has_name_;  // whether something lies under `temporary_`
};

}  // namespace tinyvllm
