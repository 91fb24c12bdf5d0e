#include "report/breakdown.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/strings.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

constexpr double kDoubleCount = 0.02;  // clocks are read one after the other
constexpr double kNearLimit = 0.6;     // of the limit: nothing but less work helps
constexpr char kUnaccounted[] = "Unaccounted";

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::vector<std::string> suggestions_at_limit(const TimedPart& part) {
  if (part.bound == "multiplying") {
    return {"Prompts are as fast as this machine multiplies: more cores or a device",
            "A prefix cache, so that prompts that begin alike are computed once",
            "Narrower weights only where they multiply faster (int8)"};
  }
  return {"Narrower weights (Q8_0, Q4_0): fewer bytes for each token",
          "Larger batches: one read of the weights serves many sequences",
          "Speculative decoding (draft and verify)"};
}

std::vector<std::string> suggestions_for(const TimedPart& part) {
  switch (part.kind) {
    case TimedPart::kSampling:
      return {"Greedy decoding, or fewer filters (top-k before top-p)",
              "A smaller vocabulary, or logprobs only where they are needed"};
    case TimedPart::kScheduling:
      return {"More tokens a step: larger batches, longer prefill chunks",
              "A larger block size, so that tables are shorter"};
    case TimedPart::kText:
      return {"Tokens instead of text at the interface", "Tokenize on other threads"};
    case TimedPart::kPrefill:
    case TimedPart::kDecode:
      return {"Look at the component farthest below its limit in the table of components",
              "Check that every core is this process's own: other work halves a step's speed"};
    case TimedPart::kOther:
      return {"Trace it: tinyvllm run --trace, then tinyvllm analyze"};
  }
  return {};
}

}  // namespace

double TimedPart::total_ms() const { return std::accumulate(ms.begin(), ms.end(), 0.0); }

double Breakdown::unaccounted_ms() const {
  double left = total_ms;
  for (const TimedPart& part : parts) left -= part.total_ms();
  return left;
}

Status Breakdown::check() const {
  if (unaccounted_ms() >= -kDoubleCount * total_ms) return Status();
  return error("the parts add up to ", fixed(total_ms - unaccounted_ms(), 3),
               " ms, more than the whole of ", fixed(total_ms, 3), " ms: something counts twice");
}

Table to_table(const Breakdown& breakdown) {
  std::vector<TimedPart> parts = breakdown.parts;
  std::stable_sort(parts.begin(), parts.end(), [](const TimedPart& a, const TimedPart& b) {
    return a.total_ms() > b.total_ms();
  });
  Table table{{{"Operation", Column::kLeft},
               {"Total (ms)"},
               {"Count"},
               {"Avg (ms)"},
               {"Median (ms)"},
               {"%"},
               {"% of limit"}},
              {}};
  const auto share = [&](double ms) {
    return fixed(breakdown.total_ms > 0 ? 100 * ms / breakdown.total_ms : 0, 1) + "%";
  };
  for (const TimedPart& part : parts) {
    if (part.ms.empty()) continue;
    const double total = part.total_ms();
    table.rows.push_back({part.name, fixed(total, 1), str_cat(part.ms.size()),
                          fixed(mean(part.ms), 3), fixed(median(part.ms), 3), share(total),
                          part.least_ms > 0 ? fixed(100 * part.least_ms / total, 0) + "%" : "-"});
  }
  const double left = breakdown.unaccounted_ms();
  table.rows.push_back({kUnaccounted, fixed(left, 1), "-", "-", "-", share(left), "-"});
  table.total = {"TOTAL", fixed(breakdown.total_ms, 1), "", "", "", share(breakdown.total_ms), ""};
  return table;
}

Bottleneck find_bottleneck(const Breakdown& breakdown) {
  TimedPart rest{kUnaccounted, {breakdown.unaccounted_ms()}};
  const TimedPart* most = &rest;
  for (const TimedPart& part : breakdown.parts) {
    if (part.total_ms() > most->total_ms()) most = &part;
  }
  const double total = most->total_ms();
  const double reached = total > 0 ? most->least_ms / total : 0;
  Bottleneck found{
      most->name, total, breakdown.total_ms > 0 ? total / breakdown.total_ms : 0, {}, {}};
  if (most->least_ms <= 0) {
    found.finding = "Overhead: no byte or product of the model's is moved here";
    found.suggestions = suggestions_for(*most);
  } else if (reached >= kNearLimit) {
    found.finding =
        str_cat(most->bound == "multiplying" ? "Compute" : "Bandwidth",
                "-bound: ", fixed(100 * reached, 0), "% of this machine's limit for ", most->bound);
    found.suggestions = suggestions_at_limit(*most);
  } else {
    found.finding = str_cat("Below its limit: ", fixed(100 * reached, 0),
                            "% of what this machine allows (", most->bound, ")");
    found.suggestions = suggestions_for(*most);
  }
  return found;
}

}  // namespace tinyvllm
