// tinyvllm SUBCOMMAND: parses the command line and runs the chosen subcommand. Exit status 0 is
// fine, 1 is failed, 2 is wrong usage,
// 130 is ended by Ctrl-C.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/command.h"

int main(int argc, char** argv) {
  CLI::App app("tinyvllm: serves language models on the machine in front of you");
  app.require_subcommand(1);
  app.set_version_flag("--version", tinyvllm::version_text);
  tinyvllm::Action action;
  tinyvllm::add_run(app, action);
  tinyvllm::add_chat(app, action);
  tinyvllm::add_inspect(app, action);
  tinyvllm::add_tokenize(app, action);
  tinyvllm::add_detokenize(app, action);
  tinyvllm::add_template(app, action);
  tinyvllm::add_analyze(app, action);
  tinyvllm::add_bench(app, action);
  tinyvllm::add_quantize(app, action);
  tinyvllm::add_perplexity(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;  // --help and --version come this way too
  }
  const tinyvllm::Status status = action();
  if (!status.ok()) {
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
    return 1;
  }
  return tinyvllm::interrupted() ? 130 : 0;
}
