#include "apps/process_memory.h"

#include <fstream>
#include <string>

namespace tinyvllm {

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  const auto read = [](const std::string& line, const char* key, double& bytes) {
    const std::string name = std::string(key) + ":";
    if (line.starts_with(name)) bytes = std::stod(line.substr(name.size())) * 1024;  // "… kB"
  };
  double shared = 0;
  for (std::string line; std::getline(status, line);) {
    read(line, "VmRSS", memory.resident);
    read(line, "VmHWM", memory.peak);
    read(line, "RssAnon", memory.anonymous);
    read(line, "RssFile", memory.files);
    read(line, "RssShmem", shared);
  }
  memory.files += shared;
  return memory;
}

}  // namespace tinyvllm
