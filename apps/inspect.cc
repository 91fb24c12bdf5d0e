// tinyvllm inspect MODEL: what a model's files say, without running it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/command.h"
#include "io/model_files.h"

namespace tinyvllm {
namespace {

struct InspectFlags {
  std::string model = kDefaultModel;
};

Status inspect(const InspectFlags& flags) {
  TRY_ASSIGN(const std::string path, resolve_model(flags.model));
  TRY_ASSIGN(const std::unique_ptr<ModelFiles> files, ModelFiles::open(path));
  TRY_ASSIGN(const std::string_view architecture, files->metadata().string("general.architecture"));
  std::printf("%s  %s, %zu tensors, %s\n", path.c_str(), printable(architecture).c_str(),
              files->weights().tensors().size(),
              human_bytes(static_cast<double>(files->file_bytes())).c_str());
  return Status();
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("inspect", "Say what a model's files hold");
  const auto flags = std::make_shared<InspectFlags>();
  command->add_option("MODEL", flags->model, "a .gguf file, a Hugging Face folder, or an alias")
      ->capture_default_str();
  command->footer("Example:\n  tinyvllm inspect smollm2");
  command->callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace tinyvllm
