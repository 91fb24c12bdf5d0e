#include "report/analyze/timeline.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

constexpr size_t kMostSteps = 4000;
constexpr int kMostLanes = 24;
constexpr size_t kMostOps = 20000;

class Builder {
 public:
  explicit Builder(const Trace& trace) : trace_(trace) {}

  void add_steps() {
    const size_t stride = trace_.steps.size() / kMostSteps + 1;
    size_t place = 0;
    for (const auto& [number, step] : trace_.steps) {
      if (place++ % stride != 0 || step.duration_ns == 0) continue;
      const std::string kind = is_prefill(step) ? "prefill" : "decode";
      add(Timeline::kSteps, step.end_ns - step.duration_ns, step.end_ns,
          str_cat(kind, " of ", step.prefill_tokens + step.decode_tokens));
    }
  }

  void add_requests() {
    std::vector<std::pair<int64_t, std::pair<std::string, int64_t>>> requests;
    for (const auto& [id, request] : trace_.requests) {
      if (request.reason.empty()) continue;
      requests.push_back({request.finished_ns - request.e2e_ns, {id, request.finished_ns}});
    }
    std::sort(requests.begin(), requests.end());
    std::vector<int64_t> free_at;  // by lane
    for (const auto& [begin, rest] : requests) {
      const auto lane = std::find_if(free_at.begin(), free_at.end(),
                                     [begin = begin](int64_t at) { return at <= begin; });
      const auto place = static_cast<int>(lane - free_at.begin());
      if (place >= kMostLanes) continue;
      if (lane == free_at.end()) free_at.push_back(0);
      free_at[static_cast<size_t>(place)] = rest.second;
      add(Timeline::kRequests, begin, rest.second, "request " + printable(rest.first, 40), place);
    }
    timeline_.lanes = std::max<int>(1, static_cast<int>(free_at.size()));
  }

  // The first prompt, and the typical and the slowest decode.
  void choose_views() {
    std::vector<std::pair<int64_t, int64_t>> decodes;  // (duration, step)
    for (const auto& [number, step] : trace_.steps) {
      if (step.duration_ns == 0) continue;
      if (is_prefill(step)) {
        if (detailed_.empty()) view("first prompt", number);
      } else {
        decodes.emplace_back(step.duration_ns, number);
      }
    }
    if (decodes.empty()) return;
    std::sort(decodes.begin(), decodes.end());
    view("typical decode step", decodes[decodes.size() / 2].second);
    view("slowest decode step", decodes.back().second);
  }

  void add_detail(const Record& record) {
    const bool op = record.type == "GpuOpCompleted";
    const std::string_view name = record.data.text(op ? "op_name" : "internal_kernel_name");
    const bool layer = record.type == "InternalKernelCompleted" && name.starts_with("block_") &&
                       name.ends_with("_total");
    if ((!op && !layer) || timeline_.spans.size() > kMostOps) return;
    if (!detailed_.contains(record.data.integer("step", op ? "data" : "", -1))) return;
    if (name.find("/cb_") != std::string_view::npos) return;
    add(op ? Timeline::kOps : Timeline::kLayers,
        record.timestamp_ns - record.data.ns("duration_us"), record.timestamp_ns,
        std::string(op ? name.substr(name.rfind('/') + 1) : name.substr(0, name.size() - 6)));
  }

  bool wants_detail() const { return !detailed_.empty(); }
  Timeline take() {
    timeline_.end_ns = std::max<int64_t>(1, trace_.last_ns);
    return std::move(timeline_);
  }

 private:
  void add(Timeline::Row row, int64_t begin, int64_t end, const std::string& name, int lane = 0) {
    const auto [place, is_new] = places_.emplace(name, timeline_.names.size());
    if (is_new) timeline_.names.push_back(name);
    timeline_.spans.push_back({row, std::max<int64_t>(0, begin), end, place->second, lane});
  }

  void view(const char* name, int64_t number) {
    const StepRow& step = trace_.steps.at(number);
    timeline_.views.push_back({name, step.end_ns - step.duration_ns, step.end_ns});
    detailed_.insert(number);
  }

  const Trace& trace_;
  Timeline timeline_;
  std::map<std::string, size_t> places_;
  std::set<int64_t> detailed_;
};

}  // namespace

Result<Timeline> make_timeline(const Trace& trace) {
  Builder builder(trace);
  builder.add_requests();
  builder.add_steps();
  builder.choose_views();
  if (builder.wants_detail()) {
    TRY(scan_again(trace, [&](const Record& record) { builder.add_detail(record); }));
  }
  return builder.take();
}

}  // namespace tinyvllm
