// Lines for people, on stderr. Data goes to stdout and never through here.
#pragma once

#include <string>

#include "base/strings.h"

namespace tinyvllm {

enum class LogLevel { kQuiet, kWarning, kInfo };
void set_log_level(LogLevel level);
void log_line(LogLevel level, const std::string& line);

template <class... Parts>
void log_info(const Parts&... parts) {
  log_line(LogLevel::kInfo, str_cat(parts...));
}
template <class... Parts>
void log_warning(const Parts&... parts) {
  log_line(LogLevel::kWarning, str_cat("warning: ", parts...));
}

}  // namespace tinyvllm
