// tinyvllm bench scalability: what more requests at a time are worth, until they are worth nothing
// more; and what the prefix cache is worth to prompts that begin alike.
#include "apps/bench.h"
#include "apps/bench_session.h"
#include "report/plot.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

constexpr int kPrompt = 16;
constexpr int kSharedPrefix = 256;
constexpr double kGrowth = 1.03;  // less than this more, twice, and it has stopped growing

Status bench_concurrency(BenchSession& session) {
  const int tokens = session.flags().tokens;
  Table table{{{"Requests"}, {"Tok/sec"}, {"Efficiency"}, {"Limit"}, {"Utilization"}}, {}};
  Series measured{"measured", {}}, limit{"limit", {}};
  double alone = 0, best = 0;
  int best_at = 0;
  for (int n = 1, flat = 0; n <= session.flags().max_concurrency && flat < 2; n *= 2) {
    TRY_ASSIGN(const std::vector<Load> loads,
               session.repeated(str_cat(n, " at a time"), n, kPrompt, tokens));
    if (loads.empty()) break;
    const BenchResult result{str_cat(n, " requests"), "tok/s",
                             map_samples(loads, &Load::tokens_per_s),
                             session.work().max_tok_s(n, kPrompt, tokens)};
    const double rate = result.value();
    if (n == 1) alone = rate;
    flat = rate > best * kGrowth ? 0 : flat + 1;
    if (rate > best) best = rate, best_at = n;
    table.rows.push_back({str_cat(n), with_spread(result.samples), percent(rate / (n * alone)),
                          decimal(*result.limit), utilization_text(result)});
    measured.points.push_back({static_cast<double>(n), rate});
    limit.points.push_back({static_cast<double>(n), *result.limit});
    session.check_limit(result);
    session.report().result(result);
  }
  session.report().add(Heading{"Throughput vs Concurrent Requests", 3});
  session.report().add(std::move(table));
  if (best_at > 0) {
    session.report().add(Paragraph{
        str_cat("Best throughput: ", decimal(best), " tok/s at ", best_at, " concurrent requests"),
        true});
  }
  session.report().add(Figure{to_svg(Chart{"Throughput against concurrency",
                                           {"concurrent requests", true},
                                           {"tok/s", true},
                                           {measured, limit}})});
  return Status();
}

// Prompts that share their beginning: `shared` tokens of it, and a few of their own.
std::vector<Prompt> alike(BenchSession& session, int count, int shared) {
  const auto prefix = std::get<std::vector<int32_t>>(session.random_prompt(shared));
  std::vector<Prompt> prompts;
  for (int i = 0; i < count; ++i) {
    const auto own = std::get<std::vector<int32_t>>(session.random_prompt(kPrompt));
    std::vector<int32_t> ids = prefix;
    ids.insert(ids.end(), own.begin(), own.end());
    prompts.emplace_back(std::move(ids));
  }
  return prompts;
}

// The same prompts' beginning, unknown to the cache and then known.
Status bench_prefix_cache(BenchSession& session) {
  const int tokens = session.flags().tokens;
  const int room = session.engine().max_model_len() - kPrompt - tokens;
  const int shared = std::min(kSharedPrefix, room);
  Table table{
      {{"Requests"}, {"Prefix", Column::kLeft}, {"TTFT (ms)"}, {"Tok/sec"}, {"Tokens found"}}, {}};
  for (const int n : {1, 4}) {
    std::vector<double> cold_ttft, warm_ttft;
    const auto add_rows = [&](const char* name, const std::vector<Load>& loads) {
      std::vector<double> ttft, found;
      for (const Load& load : loads) {
        for (const Served& r : load.requests) {
          ttft.push_back(ttft_ms(r));
          found.push_back(100.0 * r.cached_tokens / r.prompt_tokens);
        }
      }
      table.rows.push_back({str_cat(n), name, with_spread(ttft, 2),
                            with_spread(map_samples(loads, &Load::tokens_per_s)),
                            percent(mean(found) / 100)});
      session.report().result({str_cat("TTFT, ", n, " requests, prefix ", name), "ms", ttft});
    };
    std::vector<Load> warm;
    TRY_ASSIGN(const std::vector<Load> cold,
               session.repeated(str_cat("prefix cache, ", n, " at a time"), [&]() -> Result<Load> {
                 const std::vector<Prompt> all = alike(session, 2 * n + 1, shared);
                 const std::vector<Prompt> later(all.begin() + n + 1, all.end());
                 std::vector<Prompt> strangers;
                 for (int i = 0; i < n; ++i) {
                   strangers.push_back(session.random_prompt(shared + kPrompt));
                 }
                 TRY_ASSIGN(Load first, serve(session.engine(), strangers, tokens));
                 TRY(serve(session.engine(), {all.front()}, 2));
                 TRY_ASSIGN(Load second, serve(session.engine(), later, tokens));
                 warm.push_back(std::move(second));
                 return first;
               }));
    if (cold.empty()) break;
    add_rows("unknown", cold);
    add_rows("cached", warm);
  }
  session.report().add(Heading{"Prefix Cache", 3});
  session.report().add(Paragraph{str_cat("Prompts of ", shared, " + ", kPrompt,
                                         " tokens; cached: another request began alike.")});
  session.report().add(std::move(table));
  return Status();
}

}  // namespace

Status scalability_section(BenchSession& session) {
  session.report().add(Heading{"Scalability"});
  TRY(bench_concurrency(session));
  return bench_prefix_cache(session);
}

void add_bench_scalability(CLI::App& bench, Action& action) {
  add_model_bench(bench, action, "scalability", "Scalability Benchmark",
                  "More requests at a time, and prompts that begin alike", {scalability_section});
}

}  // namespace tinyvllm
