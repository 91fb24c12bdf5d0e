#include "base/cache_folder.h"

#include <cstdlib>

namespace tinyvllm {

std::filesystem::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::filesystem::path(cache) / "tinyvllm";
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : ".") / ".cache/tinyvllm";
}

}  // namespace tinyvllm
