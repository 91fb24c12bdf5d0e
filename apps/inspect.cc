// tinyvllm inspect MODEL: what a model's files say, without running it. Works for architectures
// that cannot be run yet; what a file does not say is left out of the page and null in the JSON.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <unistd.h>

#include "apps/command.h"
#include "base/json_writer.h"
#include "io/model_files.h"
#include "io/model_summary.h"

namespace tinyvllm {
namespace {

constexpr int64_t kKvLengths[] = {512, 1024, 2048, 4096};

struct InspectFlags {
  std::string model = kDefaultModel;
  bool tensors = false;
  bool json = false;
};

// The context lengths to show the KV cache at: the usual ones that fit, and the model's own.
std::vector<int64_t> kv_lengths(const ModelSummary& s) {
  std::vector<int64_t> lengths(std::begin(kKvLengths), std::end(kKvLengths));
  if (s.context_length && std::count(lengths.begin(), lengths.end(), *s.context_length) == 0) {
    lengths.push_back(*s.context_length);
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

template <class T>
void optional_field(JsonWriter& json, const char* name, const std::optional<T>& value) {
  json.key(name);
  if (value) {
    json.value(*value);
  } else {
    json.null();
  }
}

void totals_field(JsonWriter& json, std::string_view name, const TensorTotals& totals) {
  json.key(name).begin_object();
  json.field("tensors", totals.tensors).field("parameters", totals.parameters);
  json.field("bytes", totals.bytes).end_object();
}

void json_network(JsonWriter& json, const ModelSummary& s) {
  json.field("architecture", s.architecture).field("name", s.name);
  json.field("parameters", s.total.parameters);
  optional_field(json, "layers", s.layers);
  optional_field(json, "width", s.width);
  optional_field(json, "heads", s.heads);
  optional_field(json, "kv_heads", s.kv_heads);
  optional_field(json, "head_dim", s.head_dim);
  optional_field(json, "ffn_dim", s.ffn_dim);
  optional_field(json, "experts", s.experts);
  optional_field(json, "experts_used", s.experts_used);
  optional_field(json, "vocab_size", s.vocab_size);
  optional_field(json, "context_length", s.context_length);
  optional_field(json, "sliding_window", s.sliding_window);
  json.key("rope").begin_object();
  optional_field(json, "base", s.rope_base);
  optional_field(json, "dims", s.rope_dims);
  json.field("scaling", s.rope_scaling.empty() ? "none" : s.rope_scaling);
  optional_field(json, "factor", s.rope_factor);
  json.end_object();
  json.field("tokenizer", s.tokenizer).field("has_chat_template", s.has_chat_template);
}

void json_sizes(JsonWriter& json, const ModelSummary& s) {
  json.field("file_bytes", s.file_bytes).field("bytes_per_token", s.bytes_per_token);
  optional_field(json, "kv_bytes_per_token", s.kv_bytes_per_token);
  json.key("kv_bytes").begin_object();
  for (const int64_t tokens : kv_lengths(s)) {
    optional_field(json, std::to_string(tokens).c_str(), kv_bytes(s, tokens));
  }
  json.end_object().key("components").begin_object();
  for (int c = 0; c < kComponentCount; ++c) {
    totals_field(json, component_name(static_cast<Component>(c)),
                 s.components[static_cast<size_t>(c)]);
  }
  json.end_object().field("tied_head", s.tied_head).key("dtypes").begin_object();
  for (const auto& [name, totals] : s.dtypes) json.field(name, totals.tensors);
  json.end_object().key("dtype_totals").begin_object();
  for (const auto& [name, totals] : s.dtypes) totals_field(json, name, totals);
  json.end_object();
}

void json_tensors(JsonWriter& json, const ModelFiles& files) {
  json.key("tensors").begin_array();
  for (const WeightTensor& tensor : files.weights().tensors()) {
    const Shape& shape = tensor.view.shape;
    json.begin_object().field("name", tensor.name).field("dtype", dtype_name(tensor.view.dtype));
    json.field("shape", std::vector<int64_t>(shape.dims.begin(), shape.dims.begin() + shape.rank));
    json.field("bytes", tensor.view.bytes()).field("offset", tensor.file_offset);
    json.field("file", tensor.file).end_object();
  }
  json.end_array();
}

// The page for people: rows of label, value and note, then tables with their numbers to the right.
class Page {
 public:
  explicit Page(bool colour)
      : bold_(colour ? "\033[1m" : ""),
        dim_(colour ? "\033[2m" : ""),
        end_(colour ? "\033[0m" : "") {}

  void print(const ModelFiles& files, const ModelSummary& s) const {
    title(files, s);
    network(s);
    weights(s);
    decoding(s);
  }

  void tensors(const ModelFiles& files) const {
    size_t widest = 6;
    for (const WeightTensor& tensor : files.weights().tensors()) {
      widest = std::max(widest, printable(tensor.name, 255).size());
    }
    const int width = static_cast<int>(widest);
    std::printf("\n  %s%-*s  %-8s %14s %16s  shape%s\n", dim_, width, "tensor", "dtype", "bytes",
                "offset", end_);
    for (const WeightTensor& tensor : files.weights().tensors()) {
      std::printf("  %-*s  %-8s %14s %16s  %s\n", width, printable(tensor.name, 255).c_str(),
                  dtype_name(tensor.view.dtype), digits(tensor.view.bytes()).c_str(),
                  digits(tensor.file_offset).c_str(), to_string(tensor.view.shape).c_str());
    }
  }

 private:
  static std::string digits(uint64_t number) { return group_digits(static_cast<int64_t>(number)); }
  static std::string bytes(uint64_t count) { return human_bytes(static_cast<double>(count)); }

  void title(const ModelFiles& files, const ModelSummary& s) const {
    namespace fs = std::filesystem;
    const fs::path path = fs::path(files.path()).lexically_normal();
    const fs::path shown = path.has_filename() ? path.filename() : path.parent_path().filename();
    const bool gguf = files.format() == ModelFormat::kGguf;
    std::printf("%s%s%s\n%s%s%s%s, %s%s\n\n", bold_, printable(shown.string(), 255).c_str(), end_,
                dim_, printable(s.name).c_str(), s.name.empty() ? "" : ", ",
                printable(s.architecture).c_str(), gguf ? "GGUF" : "Hugging Face folder", end_);
  }

  void row(const char* label, const std::string& value, const std::string& note = "") const {
    if (note.empty()) {
      std::printf("  %-13s %s%s%s\n", label, bold_, value.c_str(), end_);
    } else {
      std::printf("  %-13s %s%-9s%s %s\n", label, bold_, value.c_str(), end_, note.c_str());
    }
  }

  void network(const ModelSummary& s) const {
    row("parameters", human_count(static_cast<double>(s.total.parameters)));
    if (s.layers) row("layers", group_digits(*s.layers));
    if (s.width) row("width", group_digits(*s.width), heads(s));
    if (s.ffn_dim) row("feed-forward", group_digits(*s.ffn_dim), experts(s));
    if (s.vocab_size) row("vocabulary", group_digits(*s.vocab_size), s.tokenizer);
    if (s.context_length) row("context", group_digits(*s.context_length), window(s));
    if (s.rope_base)
      row("RoPE", str_cat("base ", group_digits(static_cast<int64_t>(*s.rope_base)), rope(s)));
    row("chat template", s.has_chat_template ? "yes" : "no");
  }

  static std::string heads(const ModelSummary& s) {
    if (!s.heads || !s.head_dim) return "";
    std::string note = str_cat(*s.heads, " heads of ", *s.head_dim);
    if (s.kv_heads && *s.kv_heads != *s.heads) note += str_cat(", ", *s.kv_heads, " KV heads");
    return note;
  }

  static std::string experts(const ModelSummary& s) {
    if (s.experts.value_or(0) == 0) return "";
    return str_cat(*s.experts, " experts, ", s.experts_used.value_or(0), " for each token");
  }

  static std::string window(const ModelSummary& s) {
    if (s.sliding_window.value_or(0) == 0) return "tokens";
    return str_cat("tokens, sliding window of ", group_digits(*s.sliding_window));
  }

  static std::string rope(const ModelSummary& s) {
    std::string note = s.rope_dims ? str_cat(", ", *s.rope_dims, " dimensions") : "";
    if (!s.rope_scaling.empty()) note += str_cat(", ", printable(s.rope_scaling), " scaling");
    if (!s.rope_scaling.empty() && s.rope_factor) note += str_cat(" by ", *s.rope_factor);
    return note;
  }

  void totals(const std::string& label, const TensorTotals& part, const ModelSummary& s) const {
    const double share =
        static_cast<double>(part.bytes) / static_cast<double>(std::max<uint64_t>(s.total.bytes, 1));
    std::string bar;
    for (int i = 0; i < static_cast<int>(share * 24 + 0.5); ++i) bar += "█";
    std::printf("  %-13s %9s %6.1f%% %11s %8s%s%s%s%s\n", label.c_str(), bytes(part.bytes).c_str(),
                share * 100, human_count(static_cast<double>(part.parameters)).c_str(),
                digits(part.tensors).c_str(), bar.empty() ? "" : "  ", dim_, bar.c_str(), end_);
  }

  void weights(const ModelSummary& s) const {
    std::printf("\n  %s%-13s %9s %7s %11s %8s%s\n", dim_, "weights", "bytes", "share", "parameters",
                "tensors", end_);
    for (int c = 0; c < kComponentCount; ++c) {
      const auto component = static_cast<Component>(c);
      const TensorTotals& part = s.components[static_cast<size_t>(c)];
      if (part.tensors > 0) totals(component_name(component), part, s);
      if (component == Component::kHead && s.tied_head) {
        std::printf("  %-13s %9s\n", component_name(component), "tied to the embedding");
      }
    }
    std::printf("\n");
    for (const auto& [name, part] : s.dtypes) totals(name, part, s);
    std::printf("\n");
    row("on disk", bytes(s.file_bytes));
  }

  void decoding(const ModelSummary& s) const {
    row("one token", bytes(s.bytes_per_token), "of weights to read");
    if (!s.kv_bytes_per_token) return;
    row("", bytes(*s.kv_bytes_per_token), "of KV cache to keep, at F16");
    std::string header, sizes;
    for (const int64_t tokens : kv_lengths(s)) {
      const std::optional<uint64_t> size = kv_bytes(s, tokens);
      char text[32];
      std::snprintf(text, sizeof text, " %10s", group_digits(tokens).c_str());
      header += text;
      std::snprintf(text, sizeof text, " %10s", size ? bytes(*size).c_str() : "-");
      sizes += text;
    }
    std::printf("\n  %s%-13s%s%s\n  %-13s%s\n", dim_, "tokens", header.c_str(), end_, "KV cache",
                sizes.c_str());
  }

  const char* bold_;
  const char* dim_;
  const char* end_;
};

Status inspect(const InspectFlags& flags) {
  TRY_ASSIGN(const std::string path, resolve_model(flags.model));
  TRY_ASSIGN(const std::unique_ptr<ModelFiles> files, ModelFiles::open(path));
  Result<ModelSummary> summary = summarize(*files);
  if (!summary.ok()) return error(printable(path, 4096), ": ", summary.message());
  if (flags.json) {
    JsonWriter json;
    json.begin_object().field("path", path);
    json.field("format", files->format() == ModelFormat::kGguf ? "gguf" : "huggingface");
    json_network(json, summary.value());
    json_sizes(json, summary.value());
    if (flags.tensors) json_tensors(json, *files);
    std::printf("%s\n", json.end_object().str().c_str());
    return Status();
  }
  const Page page(use_colour(STDOUT_FILENO));
  page.print(*files, summary.value());
  if (flags.tensors) page.tensors(*files);
  return Status();
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("inspect", "Say what a model's files hold");
  const auto flags = std::make_shared<InspectFlags>();
  command->add_option("MODEL", flags->model, "a .gguf file, a Hugging Face folder, or an alias")
      ->capture_default_str();
  command->add_flag("--tensors", flags->tensors, "list every tensor too");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer("Example:\n  tinyvllm inspect smollm2 --json | jq .bytes_per_token");
  command->callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace tinyvllm
