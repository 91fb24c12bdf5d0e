#include "base/log.h"

#include <atomic>
#include <cstdio>

namespace tinyvllm {
namespace {

// The one process-wide setting: stderr itself is process-wide.
std::atomic<LogLevel> current_level{LogLevel::kWarning};

}  // namespace

void set_log_level(LogLevel level) { current_level.store(level, std::memory_order_relaxed); }

void log_line(LogLevel level, const std::string& line) {
  if (level > current_level.load(std::memory_order_relaxed)) return;
  const std::string text = line + "\n";  // one write, so that lines of two threads do not mix
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace tinyvllm
