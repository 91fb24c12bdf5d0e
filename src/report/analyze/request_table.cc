// Requests, the slowest first, each with the reason why it took so long.
#include <algorithm>

#include "base/strings.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

constexpr auto kLeft = Column::kLeft;
constexpr double kMuch = 0.4;        // of a request's time: that part explains it
constexpr double kSlowTokens = 1.5;  // times the median time of a token

using Entry = std::pair<std::string_view, const RequestRow*>;

double d(int64_t number) { return static_cast<double>(number); }

double ns_per_token(const RequestRow& request) {
  return d(request.decode_ns) / std::max(1.0, d(request.output_tokens - 1));
}

template <class Of>
Stats stats_of(const std::vector<Entry>& requests, const Of& of) {
  Samples samples;
  for (const auto& [id, request] : requests) samples.push_back(static_cast<int64_t>(of(*request)));
  return summarize(std::move(samples));
}

std::string why(const RequestRow& request, double median_token_ns) {
  const double all = std::max(1.0, d(request.e2e_ns));
  const auto share = [&](int64_t ns) { return percent_cell(d(ns), all).text; };
  std::string reason;
  const auto say = [&](const auto&... parts) {
    reason += str_cat(reason.empty() ? "" : "; ", parts...);
  };
  if (request.preemptions > 0) say("preempted ", request.preemptions, " times");
  if (d(request.queue_ns) > kMuch * all) say("waited in the queue (", share(request.queue_ns), ")");
  if (d(request.prefill_ns) > kMuch * all) {
    say(request.prompt_tokens - request.cached_tokens, " prompt tokens to compute (",
        share(request.prefill_ns), ")");
  }
  const double slower = median_token_ns > 0 ? ns_per_token(request) / median_token_ns : 0;
  if (slower > kSlowTokens) say("tokens took ", number_cell(slower, 1).text, "x the median");
  if (reason.empty()) {
    say(request.output_tokens, " tokens to generate (", share(request.decode_ns), ")");
  }
  return reason;
}

void note(TableSection& section, const char* what, const Stats& stats) {
  section.notes.push_back(str_cat(what, ": p50 ", ms_cell(stats.p50_ns).text, " ms, p95 ",
                                  ms_cell(stats.p95_ns).text, " ms, max ",
                                  ms_cell(stats.max_ns).text, " ms"));
}

}  // namespace

TableSection requests_table(const Trace& trace, size_t top) {
  TableSection section{"Requests",
                       {{"request", "request", kLeft},
                        {"prompt_tokens", "prompt"},
                        {"cached_tokens", "cached"},
                        {"output_tokens", "output"},
                        {"queue_ms", "queue ms"},
                        {"ttft_ms", "TTFT ms"},
                        {"token_ms", "ms/token"},
                        {"e2e_ms", "whole ms"},
                        {"finish", "finish", kLeft},
                        {"why", "why it took that long", kLeft}},
                       {}};
  std::vector<Entry> done;
  for (const auto& [id, request] : trace.requests) {
    if (!request.reason.empty()) done.emplace_back(id, &request);
  }
  const size_t open = trace.requests.size() - done.size();
  if (open > 0) section.notes.push_back(str_cat("not finished: ", open));
  if (done.empty()) return section;
  std::stable_sort(done.begin(), done.end(), [](const Entry& a, const Entry& b) {
    return a.second->e2e_ns > b.second->e2e_ns;
  });
  const Stats tokens = stats_of(done, ns_per_token);
  for (const auto& [id, request] : done) {
    if (section.rows.size() >= top) break;
    section.rows.push_back({text_cell(id), number_cell(d(request->prompt_tokens)),
                            number_cell(d(request->cached_tokens)),
                            number_cell(d(request->output_tokens)), ms_cell(d(request->queue_ns)),
                            ms_cell(d(request->ttft_ns)), ms_cell(ns_per_token(*request)),
                            ms_cell(d(request->e2e_ns)), text_cell(request->reason),
                            text_cell(why(*request, tokens.p50_ns))});
  }
  section.notes.push_back(
      str_cat(done.size(), done.size() == 1 ? " request finished" : " requests finished"));
  note(section, "TTFT", stats_of(done, [](const RequestRow& r) { return r.ttft_ns; }));
  note(section, "per token", tokens);
  note(section, "queue", stats_of(done, [](const RequestRow& r) { return r.queue_ns; }));
  return section;
}

}  // namespace tinyvllm
