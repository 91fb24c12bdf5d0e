// How a subcommand plugs in: it describes its flags to CLI11 and leaves behind what to do. main.cc
// lists them; one file per subcommand holds both parts.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace CLI {
class App;
}

namespace tinyvllm {

struct RuntimeOptions;

// Set by the subcommand that was chosen. An error is printed and ends the process with status 1.
using Action = std::function<Status()>;

void add_chat(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_perplexity(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_detokenize(CLI::App& app, Action& action);
void add_template(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_analyze(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);

// MODEL as the user wrote it → a path: an alias ("smollm2") is looked up in the cache folder, and
// the error names the command that fetches it when it is not there.
Result<std::string> resolve_model(const std::string& name);

inline constexpr char kDefaultModel[] = "smollm2";

std::string version_text();

// Ctrl-C asks: from `watch_interrupts` on, the first one only makes `interrupted` true, so that
// work can end cleanly; a second one kills, if it is to. A process that was interrupted exits with
// status 130.
void watch_interrupts(bool second_kills = true);
bool interrupted();
void clear_interrupt();

// Colour only on a terminal, and never with NO_COLOR.
bool use_colour(int fd);

}  // namespace tinyvllm
