// tinyvllm bench latency: how long the first token takes, how long each of the others, and the
// whole; with their tails, by prompt and by length of context.
#include "apps/bench.h"
#include "apps/bench_session.h"
#include "report/plot.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

constexpr const char* kPrompts[] = {"Hello", "How are you", "Tell me a story"};
constexpr int kRequests = 8;  // one after the other, in one sample
constexpr int kPrompt = 16;

// All requests of all samples.
std::vector<double> pooled(const std::vector<Load>& loads, double (*of)(const Served&)) {
  std::vector<double> values;
  for (const Load& load : loads) {
    const std::vector<double> some = load.each(of);
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

Result<Load> one_by_one(BenchSession& session) {
  Load all;
  for (int i = 0; i < kRequests; ++i) {
    TRY_ASSIGN(const Load one,
               serve(session.engine(), {session.random_prompt(kPrompt)}, session.flags().tokens));
    all.requests.push_back(one.requests.front());
  }
  return all;
}

struct Metric {
  std::string name;
  BenchResult result;
};

Status bench_requests(BenchSession& session) {
  const int tokens = session.flags().tokens;
  TRY_ASSIGN(const std::vector<Load> loads,
             session.repeated("requests one by one", [&] { return one_by_one(session); }));
  if (loads.empty()) return Status();
  const WorkLimit& work = session.work();
  const double ttft = 1e3 * work.least_prefill_s(1, kPrompt);
  const double decode = 1e3 * work.least_decode_s(1, kPrompt, tokens);
  std::vector<double> gaps;
  for (const Load& load : loads) {
    for (const Served& r : load.requests) {
      gaps.insert(gaps.end(), r.gaps_ms.begin(), r.gaps_ms.end());
    }
  }
  const std::vector<double> tpot = pooled(loads, tpot_ms);
  std::vector<double> rates;
  for (const double ms : tpot) rates.push_back(1e3 / ms);
  const std::vector<Metric> metrics = {
      {"TTFT (Time to First Token)", {"TTFT", "ms", pooled(loads, ttft_ms), ttft}},
      {"TPOT (Time Per Output Token)", {"TPOT", "ms", tpot, decode / (tokens - 1)}},
      {"ITL (Inter-Token Latency)", {"ITL", "ms", gaps, decode / (tokens - 1)}},
      {"Decode throughput", {"decode", "tok/s", rates, 1e3 * (tokens - 1) / decode}},
      {str_cat("E2E (", tokens, " tokens)"), {"E2E", "ms", pooled(loads, e2e_ms), ttft + decode}},
  };
  Table table{{{"Metric", Column::kLeft},
               {"Value"},
               {"Mean"},
               {"p50"},
               {"p90"},
               {"p99"},
               {"Limit"},
               {"Utilization"}},
              {}};
  BarChart chart{"Latency percentiles", "ms", {}, {{"p50", {}}, {"p90", {}}, {"p99", {}}}};
  for (const auto& [name, result] : metrics) {
    std::vector<std::string> row = {name, str_cat(decimal(result.value(), 2), " ", result.unit),
                                    decimal(mean(result.samples), 2)};
    size_t series = 0;
    if (result.unit == "ms") chart.names.push_back(result.name);
    for (const double p : {50.0, 90.0, 99.0}) {
      // The tail of a rate is its slow end.
      const double value = percentile(result.samples, result.more_is_better() ? 100 - p : p);
      row.push_back(decimal(value, 2));
      if (result.unit == "ms") chart.series[series++].values.push_back(value);
    }
    row.push_back(decimal(*result.limit, 2));
    row.push_back(utilization_text(result));
    table.rows.push_back(std::move(row));
    if (result.name != "ITL") session.check_limit(result);
    session.report().result(result);
  }
  session.report().add(std::move(table));
  session.report().add(Figure{to_svg(chart)});
  return Status();
}

Status bench_prompts(BenchSession& session) {
  Table table{{{"Prompt", Column::kLeft},
               {"Prompt tokens"},
               {"Tokens"},
               {"TTFT (ms)"},
               {"TPOT (ms)"},
               {"tok/s"}},
              {}};
  for (const char* prompt : kPrompts) {
    TRY_ASSIGN(const std::vector<Load> loads, session.repeated(prompt, [&] {
      return serve(session.engine(), {Prompt(std::string(prompt))}, session.flags().tokens);
    }));
    if (loads.empty()) break;
    const double tpot = median(pooled(loads, tpot_ms));
    const Served& served = loads.front().requests.front();
    table.rows.push_back({prompt, str_cat(served.prompt_tokens), str_cat(served.tokens),
                          decimal(median(pooled(loads, ttft_ms)), 2), decimal(tpot, 2),
                          decimal(1e3 / tpot)});
    session.report().result({str_cat("TPOT of '", prompt, "'"), "ms", pooled(loads, tpot_ms)});
  }
  session.report().add(Heading{"Per-Prompt Latency", 3});
  session.report().add(std::move(table));
  return Status();
}

Status bench_contexts(BenchSession& session) {
  const int tokens = session.flags().tokens;
  Table table{{{"Context"},
               {"TTFT (ms)"},
               {"TPOT (ms)"},
               {"Decode tok/s"},
               {"Prefill limit"},
               {"Decode limit"}},
              {}};
  Series ttft{"TTFT", {}}, tpot{"TPOT", {}};
  for (const int context : session.contexts()) {
    TRY_ASSIGN(const std::vector<Load> loads,
               session.repeated(str_cat("context ", context), 1, context, tokens));
    if (loads.empty()) break;
    const WorkLimit& work = session.work();
    const BenchResult first{str_cat("TTFT, context ", context), "ms", pooled(loads, ttft_ms),
                            1e3 * work.least_prefill_s(1, context)};
    const BenchResult each{str_cat("TPOT, context ", context), "ms", pooled(loads, tpot_ms),
                           1e3 * work.least_decode_s(1, context, tokens) / (tokens - 1)};
    table.rows.push_back({str_cat(context), with_spread(first.samples, 2),
                          with_spread(each.samples, 2), decimal(1e3 / each.value()),
                          utilization_text(first), utilization_text(each)});
    for (const BenchResult& result : {first, each}) {
      session.check_limit(result);
      session.report().result(result);
    }
    ttft.points.push_back({static_cast<double>(context), first.value()});
    tpot.points.push_back({static_cast<double>(context), each.value()});
  }
  session.report().add(Heading{"Context Length Scaling", 3});
  session.report().add(std::move(table));
  session.report().add(Figure{to_svg(Chart{
      "Latency against context length", {"tokens of prompt", true}, {"ms", true}, {ttft, tpot}})});
  return Status();
}

}  // namespace

Status latency_section(BenchSession& session) {
  session.report().add(Heading{"Latency"});
  TRY(bench_requests(session));
  TRY(bench_prompts(session));
  return bench_contexts(session);
}

void add_bench_latency(CLI::App& bench, Action& action) {
  add_model_bench(bench, action, "latency", "Latency Benchmark",
                  "The first token, each further one, the whole answer", {latency_section});
}

}  // namespace tinyvllm
