#include "apps/trace_flags.h"

#include <CLI/CLI.hpp>

#include "apps/command.h"
#include "base/json_writer.h"
#include "engine/machine_limits.h"

namespace tinyvllm {
namespace {

constexpr char kGroup[] = "Trace";

std::string started_json(Runtime& runtime, const TraceFlags& flags, const std::string& command,
                         const std::string& model) {
  JsonWriter json;
  json.begin_object().field("format", 1).field("level", flags.level).field("command", command);
  json.field("model", model).field("device", runtime.device().hardware());
  json.field("backend", runtime.device().name());
  const std::string version = version_text();  // more lines tell how it was built
  json.field("threads", runtime.pool().size())
      .field("version", version.substr(0, version.find('\n')));
  return json.end_object().str();
}

std::string limits_json(Runtime& runtime) {
  const MachineLimits limits = limits_of(runtime);
  JsonWriter json;
  json.begin_object().field("device", runtime.device().hardware());
  json.field("backend", runtime.device().name()).field("threads", runtime.pool().size());
  json.field("read_gb_per_s", limits.read_bytes_per_s / 1e9);
  json.field("gflop_per_s", limits.flops_per_s / 1e9);
  return json.field("int8_gop_per_s", limits.int8_ops_per_s / 1e9).end_object().str();
}

}  // namespace

void add_trace_flags(CLI::App& command, TraceFlags& flags) {
  command.add_option("--trace", flags.file, "write what happens, a JSON object a line")
      ->group(kGroup)
      ->envname("TINYVLLM_TRACE")
      ->type_name("FILE.jsonl");
  command
      .add_option("--trace-level", flags.level,
                  "step; op: every op call too; kernel: and what happens inside one")
      ->group(kGroup)
      ->check(CLI::IsMember({"off", "step", "op", "kernel"}))
      ->capture_default_str();
  command
      .add_option("--trace-rotate", flags.rotate_bytes,
                  "begin FILE.1, FILE.2, … when a part has reached this size, such as 100M")
      ->group(kGroup)
      ->transform(CLI::AsSizeValue(false));
}

Result<std::unique_ptr<TraceLog>> open_trace(Runtime& runtime, const TraceFlags& flags,
                                             const std::string& command, const std::string& model) {
  const TraceLevel level = level_from_name(flags.level).value_or(TraceLevel::kOff);
  if (flags.file.empty() || level == TraceLevel::kOff) return std::unique_ptr<TraceLog>();
  TraceFileOptions options{flags.file, level, flags.rotate_bytes, {}};
  options.head.push_back({"TraceStarted", started_json(runtime, flags, command, model)});
  options.head.push_back({"MachineLimits", limits_json(runtime)});
  auto log = TraceLog::open(runtime.tracer(), options, runtime.pool().size());
  if (!log.ok()) return error("--trace: ", log.message());
  return log;
}

}  // namespace tinyvllm
