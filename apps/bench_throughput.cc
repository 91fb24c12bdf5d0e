// tinyvllm bench throughput: tokens a second of one request, of several one after the other, and of
// many at a time; and how they fall as prompts grow.
#include "apps/bench.h"
#include "apps/bench_session.h"
#include "report/plot.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

constexpr int kPrompt = 16;
constexpr int kFew = 5;

struct Case {
  std::string name;
  int requests;
  bool together;
};

Result<std::vector<Load>> measure(BenchSession& session, const Case& c) {
  return session.repeated(c.name, [&]() -> Result<Load> {
    std::vector<Prompt> prompts;
    for (int i = 0; i < c.requests; ++i) prompts.push_back(session.random_prompt(kPrompt));
    if (c.together) return serve(session.engine(), prompts, session.flags().tokens);
    Load all;
    for (const Prompt& prompt : prompts) {
      TRY_ASSIGN(const Load one, serve(session.engine(), {prompt}, session.flags().tokens));
      all.seconds += one.seconds;
      all.requests.push_back(one.requests.front());
    }
    return all;
  });
}

Status bench_requests(BenchSession& session) {
  const int tokens = session.flags().tokens;
  std::vector<Case> cases = {{"Single request", 1, true},
                             {str_cat("Sequential (", kFew, " requests)"), kFew, false}};
  for (const int n : {kFew, 16, 64}) {
    if (n > session.flags().max_concurrency) continue;
    cases.push_back({str_cat("Concurrent (", n, " requests)"), n, true});
  }
  Table table{{{"Benchmark", Column::kLeft}, {"Tokens/sec"}, {"Limit"}, {"Utilization"}}, {}};
  double sequential = 0, concurrent = 0;
  for (const Case& c : cases) {
    TRY_ASSIGN(const std::vector<Load> loads, measure(session, c));
    if (loads.empty()) break;
    const int together = c.together ? c.requests : 1;
    const BenchResult result{c.name, "tok/s", map_samples(loads, &Load::tokens_per_s),
                             session.work().max_tok_s(together, kPrompt, tokens)};
    if (!c.together) sequential = result.value();
    if (c.together && c.requests == kFew) concurrent = result.value();
    table.rows.push_back(
        {c.name, with_spread(result.samples), decimal(*result.limit), utilization_text(result)});
    session.check_limit(result);
    session.report().result(result);
  }
  session.report().add(std::move(table));
  if (sequential > 0 && concurrent > 0) {
    const double ratio = concurrent / sequential;
    session.report().add(
        Paragraph{str_cat("Concurrent vs Sequential speedup: ", decimal(ratio, 2), "x"), true});
    session.report().result({"concurrent vs sequential", "times", {ratio}});
  }
  return Status();
}

Status bench_contexts(BenchSession& session) {
  const int tokens = session.flags().tokens;
  Table table{{{"Context Length"},
               {"Tokens"},
               {"Time (s)"},
               {"Tok/sec"},
               {"Prompt tok/s"},
               {"Utilization"}},
              {}};
  Series measured{"measured", {}}, limit{"limit", {}};
  for (const int context : session.contexts()) {
    TRY_ASSIGN(const std::vector<Load> loads,
               session.repeated(str_cat("context ", context), 1, context, tokens));
    if (loads.empty()) break;
    const BenchResult result{str_cat("context ", context), "tok/s",
                             map_samples(loads, &Load::tokens_per_s),
                             session.work().max_tok_s(1, context, tokens)};
    const double seconds = median(map_samples(loads, [](const Load& l) { return l.seconds; }));
    const double prompt = median(map_samples(
        loads, [&](const Load& l) { return 1e3 * context / ttft_ms(l.requests.front()); }));
    table.rows.push_back({str_cat(context), str_cat(tokens), decimal(seconds, 3),
                          with_spread(result.samples), decimal(prompt), utilization_text(result)});
    measured.points.push_back({static_cast<double>(context), result.value()});
    limit.points.push_back({static_cast<double>(context), *result.limit});
    session.check_limit(result);
    session.report().result(result);
  }
  session.report().add(Heading{"Context Length Scaling", 3});
  session.report().add(std::move(table));
  session.report().add(Figure{to_svg(Chart{"Throughput against context length",
                                           {"tokens of prompt", true},
                                           {"tok/s", true},
                                           {measured, limit}})});
  return Status();
}

}  // namespace

Status throughput_section(BenchSession& session) {
  session.report().add(Heading{"Throughput"});
  session.report().add(
      Paragraph{str_cat("Prompts of ", kPrompt, " tokens, ", session.flags().tokens,
                        " tokens each. The limit is what this machine allows for "
                        "the same work.")});
  TRY(bench_requests(session));
  return bench_contexts(session);
}

void add_bench_throughput(CLI::App& bench, Action& action) {
  add_model_bench(bench, action, "throughput", "Throughput Benchmark",
                  "Tokens a second: one request, several, many at a time", {throughput_section});
}

}  // namespace tinyvllm
