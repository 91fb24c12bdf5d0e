#include "report/analyze/diff.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/strings.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

constexpr auto kLeft = Column::kLeft;
constexpr size_t kBlocks = 12;         // of neighbouring steps
constexpr int64_t kFewestSteps = 8;    // in each run; below that its noise is not known
constexpr double kConfidence = 0.95;   // that none of all comparisons is wrong
constexpr double kWorthNaming = 0.02;  // two starts of one program differ by about as much
constexpr double kNearlyAll = 0.8;     // of the ops, to call a shift common
constexpr double kSameWork = 0.02;     // bytes and FLOPs a call may differ by

// All calls of an op in a phase, in the order they ran.
struct Calls {
  std::vector<const Samples*> series;  // one a layer, or one
  int64_t count = 0;
  int64_t steps = 0;  // that called it
  double total_ns = 0;
  double work = 0;  // bytes and FLOPs a call

  void add(const Samples& samples, int64_t in_steps) {
    series.push_back(&samples);
    count += static_cast<int64_t>(samples.size());
    steps = std::max(steps, in_steps);
    total_ns += static_cast<double>(total(samples));
  }
};

using CallTable = std::map<std::pair<std::string, std::string>, Calls>;  // (phase, what)

double d(int64_t number) { return static_cast<double>(number); }

// Products are compared shape by shape, so that like meets like.
CallTable op_calls(const Trace& trace) {
  CallTable table;
  for (const auto& [key, matmul] : trace.matmuls) {
    const std::string name = str_cat(matmul.part, " ", matmul.m, "x", matmul.k, "x", matmul.n);
    table[{matmul.phase, name}].add(matmul.samples, matmul.steps.steps);
  }
  for (const auto& [name, series] : trace.ops) {
    if (series.kind != OpKind::kKernel || series.is_matmul) continue;
    table[{series.phase, series.part}].add(series.samples, series.steps.steps);
  }
  for (const auto& [key, cost] : trace.costs) {
    const auto calls = table.find({cost.phase, cost.part});
    if (calls == table.end()) continue;
    calls->second.work += (cost.bytes + cost.flops) / std::max(1.0, d(calls->second.count));
  }
  return table;
}

// Durations of steps that did the same work, by name; they live in `store`.
CallTable step_calls(const Trace& trace, std::map<std::string, Samples>& store) {
  for (const auto& [number, step] : trace.steps) {
    if (step.duration_ns == 0) continue;
    const std::string phase = is_prefill(step) ? "prefill" : "decode";
    const int64_t tokens = step.prefill_tokens + step.decode_tokens;
    store[str_cat(phase, "\nstep of ", tokens, tokens == 1 ? " token" : " tokens")].push_back(
        step.duration_ns);
  }
  CallTable table;
  for (const auto& [name, samples] : store) {
    const size_t cut = name.find('\n');
    table[{name.substr(0, cut), name.substr(cut + 1)}].add(samples,
                                                           static_cast<int64_t>(samples.size()));
  }
  return table;
}

// The logarithm of each block's median, over all layers.
std::vector<double> block_medians(const Calls& calls) {
  const size_t blocks = std::min(kBlocks, static_cast<size_t>(calls.steps) / 2);
  std::vector<double> medians;
  for (size_t block = 0; block < blocks; ++block) {
    Samples samples;
    for (const Samples* series : calls.series) {
      const size_t n = series->size();
      samples.insert(samples.end(), series->begin() + static_cast<int64_t>(n * block / blocks),
                     series->begin() + static_cast<int64_t>(n * (block + 1) / blocks));
    }
    if (!samples.empty()) medians.push_back(std::log(std::max(1.0, percentile(samples, 50))));
  }
  return medians;
}

struct Mean {
  double value = 0;
  double variance = 0;  // of the mean
  double freedom = 0;
};

// A block that resembles the one before it says less: the variance grows by (1 + r) / (1 - r), r
// being how neighbours go together.
Mean mean_of(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  double sum = 0, squares = 0, neighbours = 0;
  for (const double value : values) sum += value;
  for (size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - sum / n) * (values[i] - sum / n);
    if (i > 0) neighbours += (values[i] - sum / n) * (values[i - 1] - sum / n);
  }
  const double r = squares > 0 ? std::clamp(neighbours / squares + 1 / n, 0.0, 0.8) : 0;
  const double less = (1 + r) / (1 - r);
  return {sum / n, squares / (n - 1) / n * less, std::max(2.0, (n - 1) / less)};
}

// The point that a standard normal variable exceeds with this probability, and the same for
// Student's distribution (expansion in 1/freedom; within a percent for 5 and more).
double normal_point(double probability) {
  double low = 0, high = 40;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > probability ? low : high) = middle;
  }
  return low;
}

double student_point(double probability, double freedom) {
  const double z = normal_point(probability), z2 = z * z;
  return z + z * (z2 + 1) / (4 * freedom) +
         z * ((5 * z2 + 16) * z2 + 3) / (96 * freedom * freedom) +
         z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * freedom * freedom * freedom);
}

Change compare(const Calls& a, const Calls& b, double probability) {
  Change change;
  change.calls_a = a.count;
  change.calls_b = b.count;
  const double work = std::max(a.work, b.work);
  if (a.steps < kFewestSteps || b.steps < kFewestSteps) {
    change.ns_a = a.total_ns / std::max(1.0, d(a.count));
    change.ns_b = b.total_ns / std::max(1.0, d(b.count));
    change.percent = change.ns_a > 0 ? 100 * (change.ns_b / change.ns_a - 1) : 0;
    change.verdict = Verdict::kTooFew;
    return change;
  }
  const Mean mean_a = mean_of(block_medians(a)), mean_b = mean_of(block_medians(b));
  const double variance = mean_a.variance + mean_b.variance;
  const double freedom = variance * variance /
                         std::max(1e-300, mean_a.variance * mean_a.variance / mean_a.freedom +
                                              mean_b.variance * mean_b.variance / mean_b.freedom);
  const double reach = student_point(probability, std::max(freedom, 3.0)) * std::sqrt(variance);
  const double shift = mean_b.value - mean_a.value;
  change.ns_a = std::exp(mean_a.value);
  change.ns_b = std::exp(mean_b.value);
  change.percent = 100 * std::expm1(shift);
  change.low = 100 * std::expm1(shift - reach);
  change.high = 100 * std::expm1(shift + reach);
  change.cost_ns = (change.ns_b - change.ns_a) * d(b.count);
  if (work > 0 && std::abs(a.work - b.work) > kSameWork * work) {
    change.verdict = Verdict::kOtherWork;
  } else if (std::abs(shift) > std::max(reach, kWorthNaming)) {
    change.verdict = shift > 0 ? Verdict::kSlower : Verdict::kFaster;
  }
  return change;
}

bool is_change(const Change& change) {
  return change.verdict == Verdict::kSlower || change.verdict == Verdict::kFaster;
}

const char* verdict_name(Verdict verdict) {
  constexpr const char* kNames[] = {"same",   "faster",     "slower",
                                    "as all", "other work", "too few steps"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string signed_percent(double percent) {
  return str_cat(percent < 0 ? "" : "+", number_cell(percent, 1).text, "%");
}

std::string sentence(const Change& change) {
  return str_cat(change.phase, " ", change.what, " is ", verdict_name(change.verdict), " by ",
                 number_cell(std::abs(change.percent), 1).text, "% (", signed_percent(change.low),
                 " to ", signed_percent(change.high), "), which ",
                 change.cost_ns > 0 ? "costs " : "saves ", ms_cell(std::abs(change.cost_ns)).text,
                 " ms");
}

bool is_judged(const Change& change) {
  return is_change(change) || change.verdict == Verdict::kSame;
}

// Finds a shift that nearly all ops share, and takes it for the reason of those that agree with it.
void explain_by_common_shift(Diff& diff) {
  std::vector<double> shifts;
  for (const Change& change : diff.changes) {
    if (!change.is_step && is_judged(change)) shifts.push_back(change.percent);
  }
  if (shifts.size() < 4) return;
  std::nth_element(shifts.begin(), shifts.begin() + static_cast<int64_t>(shifts.size() / 2),
                   shifts.end());
  const double common = shifts[shifts.size() / 2];
  const auto agrees = [&](const Change& change) {
    return change.low <= common && common <= change.high;
  };
  size_t agreeing = 0, changed = 0;
  for (const Change& change : diff.changes) {
    if (change.is_step || !is_judged(change)) continue;
    agreeing += agrees(change);
    changed += is_change(change);
  }
  const bool shared =
      static_cast<double>(agreeing) >= kNearlyAll * static_cast<double>(shifts.size());
  if (!shared || changed < 2 || std::abs(common) < 100 * kWorthNaming) return;
  diff.common_percent = common;
  for (Change& change : diff.changes) {
    if (is_change(change) && agrees(change)) change.verdict = Verdict::kAsAll;
  }
}

}  // namespace

Diff diff_traces(const Trace& a, const Trace& b) {
  std::map<std::string, Samples> store_a, store_b;
  const std::pair<CallTable, CallTable> ops = {op_calls(a), op_calls(b)};
  const std::pair<CallTable, CallTable> steps = {step_calls(a, store_a), step_calls(b, store_b)};
  size_t comparisons = 0;
  for (const auto* tables : {&ops, &steps}) {
    for (const auto& [key, calls] : tables->first) comparisons += tables->second.count(key);
  }
  const double probability = (1 - kConfidence) / 2 / d(std::max<int64_t>(1, comparisons));
  Diff diff;
  for (const auto* tables : {&ops, &steps}) {
    for (const auto& [key, calls] : tables->first) {
      const auto other = tables->second.find(key);
      if (other == tables->second.end()) continue;
      Change change = compare(calls, other->second, probability);
      std::tie(change.phase, change.what) = key;
      change.is_step = tables == &steps;
      diff.changes.push_back(std::move(change));
    }
  }
  explain_by_common_shift(diff);
  diff.different = std::any_of(diff.changes.begin(), diff.changes.end(), is_change);
  std::stable_sort(diff.changes.begin(), diff.changes.end(), [](const Change& x, const Change& y) {
    if (is_change(x) != is_change(y)) return is_change(x);
    return std::abs(x.cost_ns) > std::abs(y.cost_ns);
  });
  return diff;
}

TableSection to_section(const Diff& diff, size_t top) {
  TableSection section{"Difference",
                       {{"phase", "phase", kLeft},
                        {"what", "what", kLeft},
                        {"calls_a", "calls A"},
                        {"calls_b", "calls B"},
                        {"us_a", "µs A"},
                        {"us_b", "µs B"},
                        {"change_percent", "change"},
                        {"low_percent", "from"},
                        {"high_percent", "to"},
                        {"cost_ms", "costs ms"},
                        {"verdict", "verdict", kLeft}},
                       {}};
  for (const Change& c : diff.changes) {
    if (section.rows.size() < top || is_change(c)) {
      const bool sure = c.verdict != Verdict::kTooFew;
      section.rows.push_back({text_cell(c.phase), text_cell(c.what), number_cell(d(c.calls_a)),
                              number_cell(d(c.calls_b)), number_cell(c.ns_a / 1e3, 2),
                              number_cell(c.ns_b / 1e3, 2),
                              Cell{signed_percent(c.percent), c.percent},
                              sure ? Cell{signed_percent(c.low), c.low} : Cell{},
                              sure ? Cell{signed_percent(c.high), c.high} : Cell{},
                              ms_cell(c.cost_ns), text_cell(verdict_name(c.verdict))});
    }
    if (is_change(c)) section.notes.push_back(sentence(c));
  }
  const bool judged = std::any_of(diff.changes.begin(), diff.changes.end(), [](const Change& c) {
    return c.verdict != Verdict::kTooFew && c.verdict != Verdict::kOtherWork;
  });
  if (diff.common_percent != 0) {
    section.notes.push_back(
        str_cat("all ops alike are ", diff.common_percent > 0 ? "slower" : "faster", " by about ",
                number_cell(std::abs(diff.common_percent), 1).text,
                "%, as on a machine that is busier or idler, or from something under all of them",
                diff.different ? "" : "; no difference between ops beyond that"));
  } else if (!diff.different && judged) {
    section.notes.push_back("no difference: nothing changed by more than its own noise");
  } else if (!judged && !diff.changes.empty()) {
    section.notes.push_back(
        str_cat("cannot tell: nothing ran the same work in ", kFewestSteps, " steps of both runs"));
  }
  if (diff.changes.empty()) {
    section.notes.push_back(
        "nothing to compare: the logs have no op and no kind of step in common");
  }
  section.values = {{"different", diff.different ? 1 : 0}, {"common_percent", diff.common_percent}};
  return section;
}

}  // namespace tinyvllm
