// Requests, the slowest first, each with the reason why it took so long.
#include <algorithm>

#include "base/strings.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

constexpr auto kLeft = Column::kLeft;
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

// How long the steps with prompts of others took while this request was decoding.
int64_t held_up_ns(const Trace& trace, const RequestRow& request) {
  const int64_t begin = request.finished_ns - request.decode_ns;
  int64_t ns = 0;
  for (const auto& [number, step] : trace.steps) {
    const int64_t from = std::max(begin, step.end_ns - step.duration_ns);
    const int64_t to = std::min(request.finished_ns, step.end_ns);
    if (is_prefill(step) && to > from) ns += to - from;
  }
  return ns;
}

// The largest part of a request's time, in words.
std::string why(const Trace& trace, const RequestRow& request, double median_token_ns) {
  const int64_t held_up = held_up_ns(trace, request);
  const int64_t to_compute = request.prompt_tokens - request.cached_tokens;
  const double slower = median_token_ns > 0 ? ns_per_token(request) / median_token_ns : 0;
  const std::string decoding = str_cat(
      request.output_tokens, " tokens to generate",
      slower > kSlowTokens ? str_cat(" at ", number_cell(slower, 1).text, "x the median") : "");
  const std::pair<int64_t, std::string> parts[] = {
      {request.decode_ns - held_up, decoding},
      {held_up, "held up by prompts of others"},
      {request.prefill_ns, str_cat(to_compute, " prompt tokens to compute")},
      {request.queue_ns, "waited in the queue"}};
  const auto& [ns, reason] =
      *std::max_element(std::begin(parts), std::end(parts),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::string share = percent_cell(d(ns), std::max(1.0, d(request.e2e_ns))).text;
  return str_cat(
      request.preemptions > 0 ? str_cat("preempted ", request.preemptions, " times; ") : "", reason,
      " (", share, ")");
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
                            text_cell(why(trace, *request, tokens.p50_ns))});
  }
  section.notes.push_back(
      str_cat(done.size(), done.size() == 1 ? " request finished" : " requests finished"));
  note(section, "TTFT", stats_of(done, [](const RequestRow& r) { return r.ttft_ns; }));
  note(section, "per token", tokens);
  note(section, "queue", stats_of(done, [](const RequestRow& r) { return r.queue_ns; }));
  return section;
}

}  // namespace tinyvllm
