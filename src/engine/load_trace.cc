#include "engine/load_trace.h"

#include <algorithm>
#include <cstdlib>

#include "base/json_writer.h"
#include "io/model_summary.h"

namespace tinyvllm {
namespace {

std::string file_json(const ModelFiles& files) {
  JsonWriter json;
  json.begin_object().field("size_bytes", files.file_bytes()).field("path", files.path());
  return json.end_object().str();
}

std::string weights_json(const ModelSummary& summary, const ModelInfo& info) {
  const auto most = std::max_element(
      summary.dtypes.begin(), summary.dtypes.end(),
      [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  JsonWriter json;
  json.begin_object().field("total_bytes", summary.total.bytes).key("breakdown").begin_object();
  for (int i = 0; i < kComponentCount; ++i) {
    json.field(component_name(static_cast<Component>(i)),
               summary.components[static_cast<size_t>(i)].bytes);
  }
  json.end_object().field("model", summary.name.empty() ? info.architecture : summary.name);
  json.field("dtype", most == summary.dtypes.end() ? std::string() : most->first);
  json.field("layers", info.layers).field("dim", info.hidden);
  return json.field("bytes_per_token", info.weight_bytes).end_object().str();
}

// A hit is a tensor that is used where the file's map has it, a miss one that was packed.
std::string preparation_json(const PreparationStats& stats) {
  JsonWriter json;
  json.begin_object().field("cache_hits", stats.mapped).field("cache_misses", stats.packed);
  json.key("times").begin_object();
  json.field("check_us", static_cast<double>(stats.check_ns) / 1e3);
  json.field("pack_us", static_cast<double>(stats.pack_ns) / 1e3);
  return json.end_object().end_object().str();
}

std::string device_json(const Device& device) {
  const char* asked = std::getenv("TINYVLLM_ISA");
  JsonWriter json;
  json.begin_object().field("op_name", "device").field("backend", device.name());
  json.field("reason", asked != nullptr && *asked != '\0' ? "TINYVLLM_ISA" : "BestAvailable");
  return json.end_object().str();
}

}  // namespace

void trace_load(Runtime& runtime, const ModelFiles& files, const ModelInfo& info,
                const PreparationStats& stats) {
  Tracer& tracer = runtime.tracer();
  if (!tracer.on(TraceLevel::kStep)) return;
  if (files.format() == ModelFormat::kGguf) tracer.note("GgufFileMmap", file_json(files));
  if (const auto summary = summarize(files); summary.ok()) {
    tracer.note("ModelWeights", weights_json(summary.value(), info));
  }
  tracer.note("TensorPreparationStats", preparation_json(stats));
  tracer.note("KernelBackendSelected", device_json(runtime.device()));
}

}  // namespace tinyvllm
