// tinyvllm quantize IN OUT TYPE: a model's weights rewritten as one GGUF file of a type.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "apps/command.h"
#include "apps/progress.h"
#include "base/json_writer.h"
#include "base/stopwatch.h"
#include "device/runtime.h"
#include "io/model_files.h"
#include "model/convert/dummy.h"
#include "model/convert/write_gguf.h"

namespace tinyvllm {
namespace {

struct QuantizeFlags {
  std::string in;
  std::string out;
  std::string type;
  bool pure = false;
  bool json = false;
  int threads = 0;
  std::string load_format = "auto";
};

double bits_per_weight(const WriteReport& report) {
  return 8 * static_cast<double>(report.file_bytes) / static_cast<double>(report.parameters);
}

void print_json(const QuantizeFlags& flags, const FileType& type, const WriteReport& report,
                uint64_t input_bytes, double seconds) {
  std::map<std::string, int64_t> dtypes;
  for (const GgufTensor& tensor : report.tensors) dtypes[dtype_name(tensor.dtype)] += 1;
  JsonWriter json;
  json.begin_object().field("path", flags.out).field("type", type.name);
  json.field("tensors", report.tensors.size()).field("parameters", report.parameters);
  json.field("input_bytes", input_bytes).field("file_bytes", report.file_bytes);
  json.field("bits_per_weight", bits_per_weight(report)).field("seconds", seconds);
  json.field("requantized", report.requantized).key("dtypes").begin_object();
  for (const auto& [name, count] : dtypes) json.field(name, count);
  json.end_object().end_object();
  std::printf("%s\n", json.str().c_str());
}

void print_summary(const QuantizeFlags& flags, const FileType& type, const WriteReport& report,
                   uint64_t input_bytes, double seconds) {
  std::fprintf(stderr, "%s  %s, %s parameters, %s → %s (%.2f bits a weight), %.1f s\n",
               flags.out.c_str(), type.name,
               human_count(static_cast<double>(report.parameters)).c_str(),
               human_bytes(static_cast<double>(input_bytes)).c_str(),
               human_bytes(static_cast<double>(report.file_bytes)).c_str(), bits_per_weight(report),
               seconds);
}

Result<std::unique_ptr<ModelFiles>> open_input(const QuantizeFlags& flags, const FileType& type,
                                               Runtime& runtime) {
  if (flags.load_format == "dummy") {
    return make_dummy(flags.in, type, flags.pure, runtime.device(), runtime.pool());
  }
  TRY_ASSIGN(const std::string path, resolve_model(flags.in));
  return ModelFiles::open(path);
}

Status quantize(const QuantizeFlags& flags) {
  TRY_ASSIGN(const FileType type, file_type_from_name(flags.type));
  const Stopwatch clock;
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create({flags.threads}));
  TRY_ASSIGN(const std::unique_ptr<ModelFiles> files, open_input(flags, type, *runtime));
  TRY_ASSIGN(GgufModel model, gguf_model_of(*files, runtime->device(), runtime->pool()));

  ProgressBar bar(str_cat("writing ", type.name));
  WriteOptions options;
  options.pure = flags.pure;
  options.progress = [&](std::string_view tensor, int64_t done, int64_t total) {
    bar.update(tensor, done, total);
    return !interrupted();
  };
  watch_interrupts();
  const Result<WriteReport> report = write_gguf(model, type, flags.out, runtime->pool(), options);
  bar.clear();
  if (interrupted()) {
    std::fprintf(stderr, "interrupted: %s was not written\n", flags.out.c_str());
    return Status();
  }
  if (!report.ok()) return report.error();
  if (report.value().requantized > 0) {
    std::fprintf(stderr,
                 "note: %lld tensors were quantized before, and errors add up; a file of "
                 "F16 or BF16 weights gives a better result\n",
                 static_cast<long long>(report.value().requantized));
  }
  const auto print = flags.json ? print_json : print_summary;
  print(flags, type, report.value(), files->file_bytes(), clock.seconds());
  return Status();
}

}  // namespace

void add_quantize(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("quantize", "Rewrite a model's weights as a GGUF file");
  const auto flags = std::make_shared<QuantizeFlags>();
  command->add_option("IN", flags->in, "a .gguf file, a Hugging Face folder, or an alias")
      ->required();
  command->add_option("OUT", flags->out, "the .gguf file to write; replaced when it is complete")
      ->required();
  command
      ->add_option("TYPE", flags->type,
                   "F16, BF16, Q8_0, Q6_K, Q5_K_M, Q5_K_S, Q5_1, Q5_0, Q4_K_M, Q4_K_S, Q4_1, Q4_0, "
                   "Q3_K_L, Q3_K_M, Q3_K_S, Q2_K or F32")
      ->required();
  command->add_flag("--pure", flags->pure, "no mix of types: every matrix gets TYPE's base type");
  command->add_option("--threads", flags->threads, "threads to use; 0: all physical cores")
      ->capture_default_str();
  command
      ->add_option("--load-format", flags->load_format,
                   "dummy: IN is a preset or a config.json, and the weights are random")
      ->check(CLI::IsMember({"auto", "dummy"}))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print what was written as JSON");
  command->footer("Example:\n  tinyvllm quantize smollm2 smollm2-q8_0.gguf Q8_0");
  command->callback([flags, &action] { action = [flags] { return quantize(*flags); }; });
}

}  // namespace tinyvllm
