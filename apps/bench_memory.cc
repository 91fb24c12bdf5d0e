// tinyvllm bench memory: where the bytes are. Weights by component, KV cache by sequences and by
// length, and what the process was measured to take beside what it should.
#include <cmath>

#include "apps/bench.h"
#include "apps/bench_session.h"
#include "apps/decode_meter.h"
#include "report/plot.h"

namespace tinyvllm {
namespace {

constexpr int kSequenceCounts[] = {1, 2, 5};
constexpr int kPrompt = 4;
constexpr int kSequenceTokens = 8;
constexpr double kAgreement = 0.05;    // computed and measured …
constexpr double kLargeModel = 100e6;  // … of models whose size is more than the program's

// Rows of a table in the file's map are in memory from when they are first looked up. After this,
// all are: how much a kernel maps beside a row that it is asked for is its own affair.
double look_up_all(const TensorView& table) {
  if (table.data == nullptr) return 0;
  constexpr size_t kPage = 4096;
  const auto* bytes = static_cast<const volatile char*>(table.data);
  for (size_t at = 0; at < table.bytes(); at += kPage) (void)bytes[at];
  return static_cast<double>(table.bytes());
}

// What a model's text takes: the tokenizer's own tables, and the file's lists that they were made
// from.
double vocabulary_bytes(const LLMEngine& engine, const ModelSummary& summary) {
  const auto& gguf = engine.files().tokenizer().gguf;
  size_t bytes = engine.tokenizer().memory_bytes();
  if (gguf) {
    bytes += (gguf->tokens.capacity() + gguf->merges.capacity()) * sizeof(std::string_view);
    bytes += gguf->scores.capacity() * sizeof(float) + gguf->types.capacity() * sizeof(int32_t);
    bytes += engine.files().file_bytes() - summary.total.bytes;
  }
  return static_cast<double>(bytes);
}

void write_weights(BenchSession& session) {
  const ModelSummary& summary = session.summary();
  const auto all = static_cast<double>(summary.total.bytes);
  session.report().add(
      Table{{{"Metric", Column::kLeft}, {"Value"}},
            {{"Model weights", human_bytes(all)},
             {"Weights read per token", human_bytes(session.work().token_bytes())},
             {"KV memory per token", human_bytes(session.work().kv_bytes())},
             {"KV block", str_cat(human_bytes(session.kv_block_bytes()), " for ",
                                  session.flags().engine.block_size, " tokens")},
             {"KV cache, reserved",
              human_bytes(session.engine().stats().total_blocks * session.kv_block_bytes())},
             {"Activations, reserved",
              human_bytes(static_cast<double>(session.engine().runner().activation_bytes()))}}});
  Table table{{{"Component", Column::kLeft}, {"Tensors"}, {"Bytes"}, {"Share"}}, {}};
  BarChart chart{"Weights by component", "MB", {}, {{"MB", {}}}};
  for (int c = 0; c < kComponentCount; ++c) {
    const TensorTotals& part = summary.components[static_cast<size_t>(c)];
    const auto bytes = static_cast<double>(part.bytes);
    if (part.tensors == 0) continue;
    const char* name = component_name(static_cast<Component>(c));
    table.rows.push_back({name, str_cat(part.tensors), human_bytes(bytes), percent(bytes / all)});
    chart.names.push_back(name);
    chart.series[0].values.push_back(bytes / 1e6);
    session.report().result({str_cat("weights, ", name), "bytes", {bytes}});
  }
  session.report().add(Heading{"Weights by Component", 3});
  session.report().add(std::move(table));
  session.report().add(Figure{to_svg(chart)});
}

Status write_kv_scaling(BenchSession& session) {
  Table table{{{"Sequences"}, {"Tokens"}, {"KV Cache"}, {"Allocated"}}, {}};
  for (const int n : kSequenceCounts) {
    std::vector<Prompt> prompts;
    for (int i = 0; i < n; ++i) prompts.push_back(session.random_prompt(kPrompt));
    const Result<Load> load =
        serve(session.engine(), prompts, kSequenceTokens - kPrompt + 1);  // the last one stays out
    if (interrupted()) break;
    if (!load.ok()) return load.error();
    const int tokens = n * kSequenceTokens;
    const double used = tokens * session.work().kv_bytes();
    const double allocated = load.value().used_blocks * session.kv_block_bytes();
    table.rows.push_back({str_cat(n), str_cat(tokens), human_bytes(used), human_bytes(allocated)});
    session.report().result({str_cat("KV used, ", n, " sequences"), "bytes", {used}});
    session.report().result({str_cat("KV allocated, ", n, " sequences"), "bytes", {allocated}});
  }
  session.report().add(Heading{"KV Cache Scaling", 3});
  session.report().add(std::move(table));
  return Status();
}

void write_projections(BenchSession& session) {
  const int64_t full = session.info().context_length;
  std::vector<int64_t> lengths;
  for (int64_t length = 512; length < full; length *= 2) lengths.push_back(length);
  lengths.push_back(full);
  Table table{{{"Context Length"}, {"KV Cache"}, {"With weights"}}, {}};
  Series kv{"KV cache", {}};
  for (const int64_t length : lengths) {
    const double bytes = kv_bytes_read(session.info().kv_groups, length);
    table.rows.push_back({group_digits(length), human_bytes(bytes),
                          human_bytes(bytes + static_cast<double>(session.summary().total.bytes))});
    kv.points.push_back({static_cast<double>(length), bytes / 1e6});
  }
  session.report().add(Heading{"Memory Projections (per sequence)", 3});
  session.report().add(std::move(table));
  session.report().add(Figure{
      to_svg(Chart{"KV cache of one sequence", {"tokens of context", true}, {"MB", true}, {kv}})});
}

// What the model should take and what it was measured to, after one long request: it touches every
// weight, the KV cache of its length and the activations of a full step. A card's memory is taken
// at load, all of it; the process's as it is touched.
struct Footprint {
  int context = 0;
  double weights = 0, looked_up = 0, vocabulary = 0, kv = 0, activations = 0;
  double grown = 0;  // measured, since before load
  ProcessMemory now;

  double computed() const { return weights + looked_up + vocabulary + kv + activations; }
};

Result<Footprint> measure_footprint(BenchSession& session) {
  Footprint f;
  f.context = session.contexts().back();
  LLMEngine& engine = session.engine();
  TRY(serve(engine, {session.random_prompt(f.context)}, 2));
  const PreparationStats& loaded = engine.loading().weights;
  f.weights = static_cast<double>(loaded.held_bytes);
  if (session.runtime().device().host_reads()) {
    f.looked_up = look_up_all(loaded.by_row);
    f.vocabulary = vocabulary_bytes(engine, session.summary());
    f.kv = engine.stats().touched_blocks * session.kv_block_bytes();
    f.activations = static_cast<double>(engine.runner().activation_peak());
    f.now = process_memory();
    f.grown = f.now.resident - session.before_load().resident;
  } else {
    f.kv = engine.stats().total_blocks * session.kv_block_bytes();
    f.activations = static_cast<double>(engine.runner().activation_bytes());
    f.now = process_memory();
    f.grown = session.device_growth();
  }
  return f;
}

Status write_footprint(BenchSession& session, const Footprint& f) {
  const double apart = std::abs(f.grown - f.computed()) / f.computed();
  Table table{{{"Memory", Column::kLeft}, {"Computed"}, {"Measured"}}, {}};
  const auto measured = [&](const std::string& name, double bytes) {
    table.rows.push_back({name, "-", human_bytes(bytes)});
  };
  const auto computed = [&](const std::string& name, double bytes) {
    if (bytes > 0) table.rows.push_back({name, human_bytes(bytes), "-"});
  };
  measured("Before load", session.before_load().resident);
  measured("After load", session.after_load().resident);
  measured(str_cat("After a prompt of ", f.context), f.now.resident);
  measured("  of its own", f.now.anonymous);
  measured("  of mapped files", f.now.files);
  measured("Peak", f.now.peak);
  computed("Weights, as packed", f.weights);
  computed("Embedding, in the file's map", f.looked_up);
  computed("Vocabulary", f.vocabulary);
  computed("KV cache", f.kv);
  computed("Activations", f.activations);
  table.total = {"Growth since before load", human_bytes(f.computed()), human_bytes(f.grown)};
  session.report().add(Heading{"Computed and Measured", 3});
  session.report().add(std::move(table));
  session.report().result({"memory, computed", "bytes", {f.computed()}});
  session.report().result({"memory, measured", "bytes", {f.grown}});
  session.report().result({"memory, peak", "bytes", {f.now.peak}});
  const bool large = f.weights >= kLargeModel;
  session.report().add(
      Paragraph{str_cat("Computed and measured are ", percent(apart), " apart",
                        large ? "." : " (beside a model this small the program itself counts)."),
                true});
  if (!large || apart <= kAgreement) return Status();
  return error("memory: computed ", human_bytes(f.computed()), " and measured ",
               human_bytes(f.grown), " differ by ", percent(apart), ", expected at most ",
               percent(kAgreement));
}

}  // namespace

Status memory_section(BenchSession& session) {
  session.report().add(Heading{"Memory"});
  const Result<Footprint> footprint = measure_footprint(session);  // while nothing else is touched
  if (interrupted()) return Status();
  if (!footprint.ok()) return footprint.error();
  write_weights(session);
  TRY(write_kv_scaling(session));
  write_projections(session);
  return write_footprint(session, footprint.value());
}

void add_bench_memory(CLI::App& bench, Action& action) {
  add_model_bench(bench, action, "memory", "Memory Benchmark",
                  "Weights and KV cache, computed and measured", {memory_section});
}

}  // namespace tinyvllm
