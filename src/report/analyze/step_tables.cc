// What the steps did, how long they took for it, and where the time went that no op explains.
#include <algorithm>
#include <bit>

#include "base/strings.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

constexpr auto kLeft = Column::kLeft;

double d(int64_t number) { return static_cast<double>(number); }

// Steps of about the same work: decodes of the same batch, prefills of up to the next power of two.
struct StepGroup {
  int64_t tokens = 0;
  Samples durations;
};

std::string group_name(const StepRow& step) {
  const int64_t tokens = std::clamp<int64_t>(step.prefill_tokens + step.decode_tokens, 1, 1 << 30);
  if (!is_prefill(step)) return str_cat("decode\n", tokens);
  const auto top = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tokens)));
  return str_cat("prefill\n", top / 2 + 1, "-", top);
}

std::string microseconds(double ns) { return number_cell(ns / 1e3, 1).text + " µs"; }

std::vector<std::string> scheduler_notes(const Trace& trace) {
  int64_t steps = 0, wall = 0, schedule = 0, waiting = 0, running = 0, preempted = 0;
  int64_t budget = 0, used = 0, total = 0;
  for (const auto& [number, step] : trace.steps) {
    ++steps;
    wall += step.duration_ns;
    schedule += step.schedule_ns;
    waiting = std::max(waiting, step.waiting);
    running = std::max(running, step.running);
    preempted = std::max(preempted, step.preempted);  // counted since the start
    budget = std::max(budget, step.budget);
    used = std::max(used, step.blocks_used);
    total = std::max(total, step.blocks_total);
  }
  std::vector<std::string> notes = {
      str_cat("scheduling took ", microseconds(d(schedule) / d(steps)), " a step (",
              percent_cell(d(schedule), d(wall)).text, "); at most ", running, " running, ",
              waiting, " waiting; preempted ", preempted, "; budget ", budget, " tokens a step")};
  if (total > 0) {
    notes.push_back(str_cat("KV blocks: at most ", used, " of ", total, " (",
                            percent_cell(d(used), d(total)).text, ")"));
  }
  return notes;
}

}  // namespace

bool is_prefill(const StepRow& step) {
  return step.phase.empty() ? step.prefill_tokens > 0 : step.phase == "prefill";
}

TableSection steps_table(const Trace& trace, size_t top) {
  TableSection section{"Steps",
                       {{"phase", "phase", kLeft},
                        {"tokens", "tokens"},
                        {"steps", "steps"},
                        {"time_ms", "ms"},
                        {"avg_ms", "avg ms"},
                        {"p50_ms", "p50"},
                        {"p95_ms", "p95"},
                        {"max_ms", "max"},
                        {"us_per_token", "µs/token"},
                        {"tokens_per_s", "tok/s"}},
                       {}};
  NameTable<StepGroup> groups;
  for (const auto& [number, step] : trace.steps) {
    if (step.duration_ns == 0) continue;
    StepGroup& group = groups[group_name(step)];
    group.tokens += step.prefill_tokens + step.decode_tokens;
    group.durations.push_back(step.duration_ns);
  }
  std::vector<std::pair<Stats, const NameTable<StepGroup>::Row*>> rows;
  for (const auto& row : groups) rows.emplace_back(summarize(row.second.durations), &row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.first.total_ns > b.first.total_ns;
  });
  if (rows.size() > top) rows.resize(top);
  for (const auto& [stats, row] : rows) {
    const auto& [name, group] = *row;
    const size_t cut = name.find('\n');
    const double tokens = std::max(1.0, d(group.tokens)), ns = d(stats.total_ns);
    section.rows.push_back({text_cell(name.substr(0, cut)), text_cell(name.substr(cut + 1)),
                            number_cell(d(stats.count)), ms_cell(ns), ms_cell(stats.avg_ns, 3),
                            ms_cell(stats.p50_ns, 3), ms_cell(stats.p95_ns, 3),
                            ms_cell(stats.max_ns, 3), number_cell(ns / tokens / 1e3, 1),
                            number_cell(tokens / ns * 1e9, 1)});
  }
  if (!section.rows.empty()) section.notes = scheduler_notes(trace);
  return section;
}

TableSection unexplained_table(const Trace& trace) {
  TableSection section{"Where the time went that no op explains",
                       {{"part", "part", kLeft},
                        {"time_ms", "ms"},
                        {"share_percent", "of the run"},
                        {"us_per_step", "µs a step"}},
                       {}};
  double steps = 0, inside = 0, schedule = 0, forward = 0, sample = 0, deliver = 0, ops = 0;
  double waits = 0, at_once = 0;
  int64_t first = trace.last_ns, last = 0;
  for (const auto& [number, step] : trace.steps) {
    if (step.duration_ns == 0) continue;
    ++steps;
    inside += d(step.duration_ns);
    schedule += d(step.schedule_ns);
    forward += d(step.forward_ns);
    sample += d(step.sample_ns);
    deliver += d(step.deliver_ns);
    ops += d(step.op_ns);
    waits += d(step.wait_ns);
    // A card works on a step while the host plans the next one and delivers the last.
    const int64_t parts = step.schedule_ns + step.forward_ns + step.sample_ns + step.deliver_ns;
    at_once += d(std::max<int64_t>(0, parts - step.duration_ns));
    first = std::min(first, step.end_ns - step.duration_ns);
    last = std::max(last, step.end_ns);
  }
  const double wall = d(wall_ns(trace));
  if (steps == 0 || wall == 0) return section;
  const auto row = [&](const char* part, double ns, bool per_step) {
    section.rows.push_back({text_cell(part), ms_cell(ns), percent_cell(ns, wall),
                            per_step ? number_cell(ns / steps / 1e3, 1) : Cell{}});
  };
  if (ops > 0) row("inside ops", ops, true);
  if (waits > 0) row("  of that, threads at a barrier", waits, true);
  if (ops > 0) {
    row("forward and sampling, between ops", forward + sample - ops, true);
  } else {
    row("forward (its ops are not in this log)", forward, true);
    row("sampling", sample, true);
  }
  row("scheduling", schedule, true);
  row("delivering tokens", deliver, true);
  if (at_once > 0) row("  of all these, beside one another", at_once, true);
  row("rest of the step", inside - schedule - forward - sample - deliver + at_once, true);
  row("between steps", d(last - first) - inside, true);
  row("before the first step", d(first - std::max<int64_t>(trace.first_ns, 0)), false);
  row("after the last step", wall - d(last - std::max<int64_t>(trace.first_ns, 0)), false);
  row("the run", wall, false);
  section.values = {{"wall_ms", wall / 1e6}, {"steps_ms", inside / 1e6}, {"ops_ms", ops / 1e6}};
  return section;
}

}  // namespace tinyvllm
