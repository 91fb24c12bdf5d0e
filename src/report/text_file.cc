#include "report/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/strings.h"

namespace tinyvllm {

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return error("cannot open '", printable(path), "': ", std::strerror(errno));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return error("cannot read '", printable(path), "': ", std::strerror(errno));
  return text;
}

Status write_text_file(const std::string& path, std::string_view text) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr) return error("cannot write '", printable(path), "': ", std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file == stdout ? std::fflush(file) == 0 : std::fclose(file) == 0;
  if (!written || !closed) {
    return error("cannot write '", printable(path), "': ", std::strerror(errno));
  }
  return Status();
}

}  // namespace tinyvllm
