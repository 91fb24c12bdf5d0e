// tinyvllm SUBCOMMAND: parses the command line and runs the chosen subcommand. Exit status 0 is
// fine, 1 is failed, 2 is wrong usage.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/command.h"

int main(int argc, char** argv) {
  CLI::App app("tinyvllm: serves language models on the machine in front of you");
  app.require_subcommand(1);
  tinyvllm::Action action;
  tinyvllm::add_inspect(app, action);
  CLI11_PARSE(app, argc, argv);
  const tinyvllm::Status status = action();
  if (!status.ok()) {
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
