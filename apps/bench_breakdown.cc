// tinyvllm bench breakdown: where the time of a request goes: text, prefill, decode, sampling,
// scheduling; then layer by layer, by component and op by op, each beside its own limit.
#include <algorithm>
#include <functional>
#include <map>

#include "apps/bench.h"
#include "apps/bench_session.h"
#include "apps/step_profile.h"
#include "report/breakdown.h"
#include "report/plot.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

constexpr char kPrompt[] =
    "Hello, how are you today? I would like to know more about the sea, and why it is salt.";
constexpr int kLayerPrompt = 50;
constexpr int kLayerSteps = 10;

// A request's time, from its text to its answer's.
Breakdown request_breakdown(const ProfiledRequest& request, const Roof& roof) {
  TimedPart encode{"1. Tokenization (encode)", {request.encode_ms}, 0, "", TimedPart::kText};
  TimedPart prefill{"2. Prefill (full prompt)", {}, 0, "", TimedPart::kPrefill};
  TimedPart sampling{"3. Sampling", {}, 0, "", TimedPart::kSampling};
  TimedPart decode{"4. Decode forward", {}, 0, "", TimedPart::kDecode};
  TimedPart text{"5. Detokenization (decode)", request.decode_text_ms, 0, "", TimedPart::kText};
  TimedPart schedule{"6. Scheduling and batches", {}, 0, "", TimedPart::kScheduling};
  for (const ProfiledStep& step : request.steps) {
    TimedPart& forward = step.phase == Phase::kPrefill ? prefill : decode;
    forward.ms.push_back(step.forward_ms);
    sampling.ms.push_back(step.sample_ms);
    schedule.ms.push_back(step.schedule_ms);
    const Roof::Bound least = roof.least(step.ops);
    forward.least_ms += 1e3 * least.seconds;
    forward.bound = least.by;
  }
  return {{encode, prefill, sampling, decode, text, schedule}, request.total_ms};
}

void write_request(BenchSession& session, const ProfiledRequest& request, double plain_ms) {
  BenchReport& report = session.report();
  const Breakdown parts = request_breakdown(request, session.roof());
  report.add(Code{str_cat("Generated ", request.tokens,
                          " tokens\nOutput: ", printable(request.text, 200), "...")});
  report.add(Heading{"Timing Breakdown", 3});
  report.add(to_table(parts));
  std::vector<double> decode;
  for (const ProfiledStep& step : request.steps) {
    if (step.phase == Phase::kDecode) decode.push_back(step.total_ms);
  }
  report.add(Code{str_cat(
      "Derived Metrics:\n  Total time: ", decimal(request.total_ms),
      " ms\n  Decode steps: ", decode.size(), "\n  Avg decode latency: ", decimal(mean(decode), 3),
      " ms/token\n  Median decode latency: ", decimal(median(decode), 3),
      " ms/token\n  Decode throughput: ", decimal(1e3 / mean(decode)), " tok/s (median ",
      decimal(1e3 / median(decode)), ")\n  Without the ledger: ", decimal(plain_ms, 3),
      " ms/token, so watching costs ",
      median(decode) > plain_ms ? percent(median(decode) / plain_ms - 1) : "less than shows")});
  for (const TimedPart& part : parts.parts) report.result({part.name, "ms", part.ms});
  report.result({"unaccounted", "ms", {parts.unaccounted_ms()}});
  report.result({"total", "ms", {request.total_ms}});
  report.result({"decode step", "ms", decode, 1e3 / session.work().max_decode_tok_s()});

  const Bottleneck found = find_bottleneck(parts);
  std::string text =
      str_cat("Primary bottleneck: ", found.part, "\n  Time: ", decimal(found.ms), " ms (",
              percent(found.share), " of total)\n  ", found.finding, "\n\n  Suggestion: consider:");
  for (const std::string& suggestion : found.suggestions) text += str_cat("\n    - ", suggestion);
  report.add(Heading{"Bottleneck Analysis"});
  report.add(Code{text});
}

// Which part of the model an op call belongs to.
std::string component_of(const OpCall& call, bool after_attention) {
  const std::string_view op = call.op;
  if (op == "rope_kv_write") return "RoPE and KV write";
  if (op == "embedding") return "Embedding";
  if (call.layer < 0) return "Output projection";
  return after_attention ? "FFN" : "Attention";
}

// [component] or [Layer N component] → its calls, step by step.
struct Component {
  std::vector<double> ms;  // of each step
  double least_ms = 0, bytes = 0, flops = 0;
  std::map<std::string, double> bounds;

  double total_ms() const {
    double sum = 0;
    for (const double m : ms) sum += m;
    return sum;
  }
  std::string bound() const {
    std::string by;
    double most = 0;
    for (const auto& [name, seconds] : bounds) {
      if (seconds >= most) most = seconds, by = name;
    }
    return by;
  }
  void add(const OpCall& call, const Roof& roof) {
    const Roof::Bound least = roof.least(call);
    ms.back() += static_cast<double>(call.end_ns - call.begin_ns) / 1e6;
    least_ms += 1e3 * least.seconds;
    bounds[least.by] += least.seconds;
    bytes += call.bytes;
    flops += call.flops;
  }
};
using Components = std::map<std::string, Component>;

// The attention of a layer ends with the projection after it.
template <class Name>
Components sum_up(const std::vector<ProfiledStep>& steps, const Roof& roof, Name&& name) {
  Components sums;
  for (const ProfiledStep& step : steps) {
    std::map<std::string, bool> seen;
    int layer = -1, state = 0;  // 0: before attention, 1: before its projection, 2: after it
    for (const OpCall& call : step.ops) {
      if (call.layer != layer) layer = call.layer, state = 0;
      Component& sum = sums[name(call, component_of(call, state == 2))];
      if (!seen[name(call, component_of(call, state == 2))]) {
        sum.ms.push_back(0);
        seen[name(call, component_of(call, state == 2))] = true;
      }
      sum.add(call, roof);
      if (std::string_view(call.op) == "attention") {
        state = 1;
      } else if (state == 1) {
        state = 2;
      }
    }
  }
  return sums;
}

Breakdown layer_breakdown(const std::vector<ProfiledStep>& steps, const Roof& roof) {
  const Components sums = sum_up(steps, roof, [](const OpCall& call, const std::string& component) {
    const bool by_layer = component == "Attention" || component == "FFN";
    return by_layer ? str_cat("Layer ", call.layer, " ", component) : component;
  });
  Breakdown all;
  for (const ProfiledStep& step : steps) all.total_ms += step.forward_ms;
  for (const auto& [name, sum] : sums) {
    all.parts.push_back({name, sum.ms, sum.least_ms, sum.bound()});
  }
  return all;
}

void write_components(BenchSession& session, const std::vector<ProfiledStep>& steps,
                      const Breakdown& layers) {
  const Components sums = sum_up(
      steps, session.roof(), [](const OpCall&, const std::string& component) { return component; });
  std::vector<std::pair<std::string, Component>> sorted(sums.begin(), sums.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.total_ms() > b.second.total_ms(); });
  Table table{{{"Component", Column::kLeft},
               {"Time (ms)"},
               {"%"},
               {"GB/s"},
               {"GFLOP/s"},
               {"Limit (ms)"},
               {"% of limit"},
               {"Bound by", Column::kLeft}},
              {}};
  BarChart chart{"A decode step by component", "ms", {}, {{"measured", {}}, {"at the limit", {}}}};
  const auto steps_count = static_cast<double>(steps.size());
  for (const auto& [name, sum] : sorted) {
    const bool layered = name == "Attention" || name == "FFN";
    const double ms = sum.total_ms();
    table.rows.push_back({name + (layered ? " (all layers)" : ""), decimal(ms),
                          percent(ms / layers.total_ms), decimal(sum.bytes / ms / 1e6),
                          decimal(sum.flops / ms / 1e6), decimal(sum.least_ms),
                          percent(sum.least_ms / ms), sum.bound()});
    chart.names.push_back(name);
    chart.series[0].values.push_back(ms / steps_count);
    chart.series[1].values.push_back(sum.least_ms / steps_count);
    session.report().result({"component, " + name, "ms", sum.ms, sum.least_ms / steps_count});
  }
  const double left = layers.unaccounted_ms();
  table.rows.push_back({"Unaccounted", decimal(left), percent(left / layers.total_ms), "-", "-",
                        "-", "-", "between ops"});
  table.total = {"TOTAL", decimal(layers.total_ms), "100.0%", "", "", "", "", ""};
  session.report().add(Heading{"Aggregated by Component"});
  session.report().add(std::move(table));
  session.report().add(Figure{to_svg(chart)});
}

// Every op with its type and shape, and the roof over them.
void write_ops(BenchSession& session, const std::vector<ProfiledStep>& prefill,
               const std::vector<ProfiledStep>& decode) {
  struct Op {
    OpCall call;
    std::vector<double> us;
  };
  std::map<std::string, Op> ops;
  for (const auto* steps : {&prefill, &decode}) {
    for (const ProfiledStep& step : *steps) {
      for (const OpCall& call : step.ops) {
        const bool attention = std::string_view(call.op) == "attention";
        std::string name = str_cat(call.op, " ", dtype_name(call.dtype));
        if (!attention) name += str_cat(" ", call.out, "x", call.in);
        if (call.rows > 1) name += str_cat(" rows=", call.rows);
        Op& op = ops[str_cat(phase_name(call.phase), " ", name)];
        op.call = call;
        op.us.push_back(static_cast<double>(call.end_ns - call.begin_ns) / 1e3);
      }
    }
  }
  Table table{{{"Op", Column::kLeft},
               {"Calls"},
               {"Median (us)"},
               {"GB/s"},
               {"GFLOP/s"},
               {"% of limit"},
               {"Bound by", Column::kLeft}},
              {}};
  Series points{"ops", {}, Mark::kPoints};
  for (const auto& [name, op] : ops) {
    const double us = median(op.us);
    const Roof::Bound least = session.roof().least(op.call);
    const double reached = 1e6 * least.seconds / us;
    table.rows.push_back({name, str_cat(op.us.size()), decimal(us),
                          decimal(op.call.bytes / us / 1e3), decimal(op.call.flops / us / 1e3),
                          least.seconds > 0 ? percent(reached) : "-", least.by});
    // A card runs on after the host's clock has stopped: only its own limits would judge.
    if (session.runtime().device().host_reads()) session.check_limit(name, reached);
    session.report().result({"op, " + name, "us", op.us, 1e6 * least.seconds});
    if (op.call.bytes > 0 && op.call.flops > 0) {
      points.points.push_back({op.call.flops / op.call.bytes, op.call.flops / us / 1e3, name});
    }
  }
  session.report().add(Heading{"Ops"});
  session.report().add(std::move(table));
  session.report().add(roofline(session.roof(), {points}));
}

// The middle one of several runs.
Result<ProfiledRequest> median_run(BenchSession& session, const char* what,
                                   const std::function<Result<ProfiledRequest>()>& run) {
  std::vector<ProfiledRequest> runs;
  for (int i = 0; i < session.flags().repeat; ++i) {
    session.report().say(str_cat(what, ", sample ", i + 1, " of ", session.flags().repeat));
    TRY_ASSIGN(ProfiledRequest request, run());
    runs.push_back(std::move(request));
  }
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.total_ms < b.total_ms; });
  return runs[runs.size() / 2];
}

Status write_requests(BenchSession& session) {
  // Each begins differently, or the prefix cache would have most of it.
  std::string margin;
  const auto run = [&](bool watch) {
    return [&session, &margin, watch] {
      margin += '\n';
      return profile_request(session.engine(), margin + kPrompt, session.flags().tokens, watch);
    };
  };
  TRY_ASSIGN(const ProfiledRequest plain, median_run(session, "a request", run(false)));
  TRY_ASSIGN(const ProfiledRequest watched, median_run(session, "watching a request", run(true)));
  std::vector<double> plain_ms;
  for (const ProfiledStep& step : plain.steps) plain_ms.push_back(step.total_ms);
  TRY(request_breakdown(watched, session.roof()).check());
  write_request(session, watched, median(plain_ms));
  return Status();
}

Status write_layers(BenchSession& session) {
  TRY_ASSIGN(const ProfiledRequest request, median_run(session, "watching layers", [&] {
               return profile_request(session.engine(), session.random_prompt(kLayerPrompt),
                                      kLayerSteps + 1, true);
             }));
  std::vector<ProfiledStep> prefill, decode;
  for (const ProfiledStep& step : request.steps) {
    (step.phase == Phase::kPrefill ? prefill : decode).push_back(step);
  }
  const Breakdown by_layer = layer_breakdown(decode, session.roof());
  TRY(by_layer.check());
  session.report().add(Heading{"Timing Breakdown", 3});
  session.report().add(to_table(by_layer));
  write_components(session, decode, by_layer);
  write_ops(session, prefill, decode);
  return Status();
}

}  // namespace

Status breakdown_section(BenchSession& session) {
  BenchReport& report = session.report();
  report.add(Heading{"High-Level Breakdown"});
  report.add(Code{str_cat("Warmed up (", session.flags().warmup,
                          " runs)\nRunning benchmark with prompt: '", printable(kPrompt, 50),
                          "'\nGenerating ", session.flags().tokens, " tokens")});
  const Status requests = write_requests(session);
  if (interrupted()) return Status();
  TRY(requests);
  report.add(Heading{"Per-Layer Breakdown (decode only)"});
  report.add(Code{str_cat("Prefilling ", kLayerPrompt, " tokens...\nBenchmarking ", kLayerSteps,
                          " decode steps...")});
  const Status layers = write_layers(session);
  return interrupted() ? Status() : layers;
}

void add_bench_breakdown(CLI::App& bench, Action& action) {
  add_model_bench(bench, action, "breakdown", "Inference Breakdown Benchmark",
                  "Where the time goes: phases, layers, components, ops", {breakdown_section});
}

}  // namespace tinyvllm
