#include "apps/command.h"

#include <cstdlib>
#include <filesystem>
#include <signal.h>
#include <unistd.h>

#include "base/cache_folder.h"

namespace tinyvllm {
namespace {

struct Alias {
  const char* name;
  const char* file;
};
constexpr Alias kAliases[] = {
    {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
};

volatile sig_atomic_t interrupt_seen = 0;  // signals are the process's, and so is this

}  // namespace

Result<std::string> resolve_model(const std::string& name) {
  for (const Alias& alias : kAliases) {
    if (name != alias.name) continue;
    const std::filesystem::path path = cache_folder() / "models" / alias.file;
    if (std::filesystem::exists(path)) return path.string();
    return error("model '", name, "' is not fetched yet (", path.string(),
                 " does not exist); fetch it with: tools/get_model ", name);
  }
  if (std::filesystem::exists(name)) return name;
  std::string known;
  for (const Alias& alias : kAliases) known += str_cat(known.empty() ? "" : ", ", alias.name);
  return error("model '", name, "' is neither a file, a folder, nor a known alias (", known, ")");
}

void watch_interrupts(bool second_kills) {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupt_seen = 1; };
  if (second_kills) action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return interrupt_seen != 0; }

void clear_interrupt() { interrupt_seen = 0; }

bool use_colour(int fd) { return isatty(fd) == 1 && std::getenv("NO_COLOR") == nullptr; }

}  // namespace tinyvllm
