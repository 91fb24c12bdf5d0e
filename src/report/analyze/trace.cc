#include "report/analyze/trace.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace tinyvllm {
namespace {

constexpr std::string_view kUnknown = "<unknown>";

// Types that this analyzer knows of; of the first group the last record says it all.
constexpr std::array<std::string_view, 9> kFactTypes = {
    "TraceStarted", "MachineLimits", "TraceCalibration", "ModelWeights", "HostMemory",
    "PrefixCache",  "TraceEnded",    "GgufFileMmap",     "ForwardStep"};
constexpr std::array<std::string_view, 13> kOtherTypes = {"GpuOpCompleted",
                                                          "InternalKernelCompleted",
                                                          "GpuKernelDispatched",
                                                          "KernelBackendSelected",
                                                          "ResourceCacheAccess",
                                                          "ResourceCacheSummary",
                                                          "RequestAdded",
                                                          "RequestFinished",
                                                          "StepPlan",
                                                          "StepCompleted",
                                                          "KvBlocks",
                                                          "RecordsDropped",
                                                          "TensorPreparationStats"};

template <class List>
bool contains(const List& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::string_view or_unknown(std::string_view text) { return text.empty() ? kUnknown : text; }

OpKind kind_of(std::string_view op_name) {
  if (op_name.find("/cb_gpu") != std::string_view::npos) return OpKind::kCommandBuffer;
  if (op_name.find("cb_wait") != std::string_view::npos || op_name.ends_with("wait")) {
    return OpKind::kWait;
  }
  return OpKind::kKernel;
}

// "Generation Loop/block_3/sdpa_block_3_op" → "sdpa".
std::string_view part_of(std::string_view op_name) {
  std::string_view part = op_name.substr(op_name.rfind('/') + 1);
  if (part.ends_with("_op")) part.remove_suffix(3);
  const size_t block = part.rfind("_block_");
  if (block != std::string_view::npos && block > 0 &&
      part.find_first_not_of("0123456789", block + 7) == std::string_view::npos) {
    part = part.substr(0, block);
  }
  return part.empty() ? kUnknown : part;
}

std::string_view phase_of(const Fields& data, std::string_view op_name) {
  const std::string_view said = data.text("phase", "data");
  if (!said.empty()) return said;
  if (op_name.starts_with("Prompt Processing")) return "prefill";
  return op_name.starts_with("Generation Loop") ? "decode" : "";
}

void append_samples(NameTable<Samples>& ours, NameTable<Samples>& theirs) {
  ours.take(std::move(theirs), [](Samples& to, Samples& more) { append(to, more); });
}

void add_counts(int64_t& ours, int64_t& theirs) { ours += theirs; }

// A step's or request's records may lie on both sides of where a log was cut.
void merge_steps(StepRow& a, StepRow& b) {
  if (a.phase.empty()) a.phase = b.phase;
  for (const auto member :
       {&StepRow::prefill_tokens, &StepRow::decode_tokens, &StepRow::sequences, &StepRow::budget,
        &StepRow::waiting, &StepRow::running, &StepRow::preempted, &StepRow::end_ns,
        &StepRow::duration_ns, &StepRow::schedule_ns, &StepRow::forward_ns, &StepRow::sample_ns,
        &StepRow::deliver_ns, &StepRow::blocks_used, &StepRow::blocks_total}) {
    a.*member = std::max(a.*member, b.*member);
  }
  a.op_ns += b.op_ns;
  a.wait_ns += b.wait_ns;
}

}  // namespace

double fact(const Facts& facts, std::string_view key, double fallback) {
  const auto found = facts.find(key);
  if (found == facts.end()) return fallback;
  char* end = nullptr;
  const double value = std::strtod(found->second.c_str(), &end);
  return end == found->second.c_str() ? fallback : value;
}

void Trace::add(const Record& record) {
  EventType& type = types[record.type];
  const bool is_fact = type.count == 0 || type.known ? contains(kFactTypes, record.type) : false;
  if (type.count++ == 0) type.known = is_fact || contains(kOtherTypes, record.type);
  ++events;
  if (first_ns < 0) first_ns = record.timestamp_ns;
  last_ns = std::max(last_ns, record.timestamp_ns);
  const Fields& data = record.data;
  if (record.type == "GpuOpCompleted") {
    add_op(record);
  } else if (record.type == "InternalKernelCompleted") {
    const std::string_view parent = or_unknown(data.text("parent_op_name"));
    const std::string_view kernel = or_unknown(data.text("internal_kernel_name"));
    if (const auto ns = data.nanoseconds("duration_us")) internals[parent][kernel].push_back(*ns);
  } else if (record.type == "KernelBackendSelected") {
    const std::string_view op = or_unknown(data.text("op_name"));
    const std::string_view backend = or_unknown(data.text("backend"));
    ++selected_backend[backend];
    ++selected_reason[or_unknown(data.text("reason"))];
    key_.assign("op=").append(op).append(" backend=").append(backend);
    ++selected_op[key_];
  } else if (record.type.starts_with("Step") || record.type == "KvBlocks") {
    add_step(record);
  } else if (record.type.starts_with("Request")) {
    add_request(record);
  } else if (record.type == "RecordsDropped") {
    dropped += data.integer("count");
  } else if (is_fact) {
    Facts& facts = latest[record.type];
    facts.clear();
    for (const Fields::Field& field : data.all()) {
      key_.assign(field.scope).append(field.scope.empty() ? "" : ".").append(field.key);
      std::string& value = facts[key_];
      value.clear();
      Fields::write(field, value);
    }
  }
}

void Trace::add_op(const Record& record) {
  const Fields& data = record.data;
  const std::string_view name = or_unknown(data.text("op_name"));
  const std::optional<int64_t> ns = data.nanoseconds("duration_us");
  if (!ns) return;
  OpSeries& series = ops[name];
  if (series.samples.empty()) {
    series.kind = kind_of(name);
    series.part = part_of(name);
    series.phase = phase_of(data, name);
    series.layer = data.integer("layer", "data", -1);
  }
  series.samples.push_back(*ns);
  const int64_t step = data.integer("step", "data", -1);
  series.steps.add(step < 0 ? static_cast<int64_t>(series.samples.size()) : step);
  if (series.kind == OpKind::kKernel) {
    series.is_matmul = add_matmul(series, data, step, *ns);
    add_cost(series, data, *ns);
    if (step >= 0) steps[step].op_ns += *ns;
  } else if (series.kind == OpKind::kWait && step >= 0) {
    steps[step].wait_ns += *ns;
  }
}

bool Trace::add_matmul(const OpSeries& op_series, const Fields& data, int64_t step, int64_t ns) {
  constexpr std::string_view kShape[] = {"op", "batch", "m", "n", "k", "tA", "tB"};
  if (!data.number("m", "data") || !data.number("k", "data")) return false;
  key_.clear();
  for (const std::string_view name : kShape) {
    key_.append(key_.empty() ? "" : " | ").append(name).append("=");
    if (!data.write(name, "data", key_)) key_.append("?");
  }
  const size_t shape_size = key_.size();
  std::string_view backend = data.text("backend", "data");
  if (backend.empty()) backend = data.text("kernel", "data");
  if (backend.empty()) backend = or_unknown(data.text("backend"));
  key_.append("\n").append(backend);
  key_.append("\n").append(op_series.part).append("\n").append(op_series.phase);
  MatmulSeries& series = matmuls[key_];
  if (series.samples.empty()) {
    series.op = or_unknown(data.text("op", "data"));
    series.shape = key_.substr(0, shape_size);
    series.backend = backend;
    series.part = op_series.part;
    series.phase = op_series.phase;
    series.m = data.integer("m", "data");
    series.n = data.integer("n", "data");
    series.k = data.integer("k", "data");
  }
  series.samples.push_back(ns);
  series.steps.add(step < 0 ? static_cast<int64_t>(series.samples.size()) : step);
  return true;
}

void Trace::add_cost(const OpSeries& series, const Fields& data, int64_t ns) {
  const std::string_view dtype = data.text("dtype", "data"), kernel = data.text("kernel", "data");
  key_.assign(series.part).append("\n").append(series.phase).append("\n");
  key_.append(dtype).append("\n").append(kernel);
  OpCost& cost = costs[key_];
  if (cost.calls++ == 0) {
    cost.part = series.part;
    cost.phase = series.phase;
    cost.dtype = dtype;
    cost.kernel = kernel;
    cost.backend = data.text("backend");
  }
  cost.ns += ns;
  cost.bytes += data.number_or("bytes", 0, "data");
  cost.flops += data.number_or("flops", 0, "data");
}

void Trace::add_step(const Record& record) {
  const Fields& data = record.data;
  if (!data.number("step")) return;
  StepRow& step = steps[data.integer("step")];
  if (record.type == "StepPlan") {
    step.prefill_tokens = data.integer("prefill_tokens");
    step.decode_tokens = data.integer("decode_tokens");
    step.sequences = data.integer("sequences");
    step.budget = data.integer("budget");
    step.waiting = data.integer("waiting");
    step.running = data.integer("running");
    step.preempted = data.integer("preempted");
    step.schedule_ns = data.ns("schedule_us");
  } else if (record.type == "StepCompleted") {
    step.end_ns = record.timestamp_ns;
    step.duration_ns = data.ns("duration_us");
    step.phase = data.text("phase");
    step.schedule_ns = std::max(step.schedule_ns, data.ns("schedule_us"));
    step.forward_ns = data.ns("forward_us");
    step.sample_ns = data.ns("sample_us");
    step.deliver_ns = data.ns("deliver_us");
  } else if (record.type == "KvBlocks") {
    step.blocks_used = data.integer("used");
    step.blocks_total = data.integer("total");
  }
}

void Trace::add_request(const Record& record) {
  const Fields& data = record.data;
  key_.clear();
  if (!data.write("request_id", {}, key_)) key_ = kUnknown;
  RequestRow& request = requests[key_];
  request.prompt_tokens = std::max(request.prompt_tokens, data.integer("prompt_tokens"));
  if (record.type == "RequestAdded") request.added_ns = record.timestamp_ns;
  if (record.type != "RequestFinished") return;
  request.finished_ns = record.timestamp_ns;
  request.reason = or_unknown(data.text("reason"));
  request.output_tokens = data.integer("output_tokens");
  request.cached_tokens = data.integer("cached_tokens");
  request.queue_ns = data.ns("queue_us");
  request.prefill_ns = data.ns("prefill_us");
  request.ttft_ns = data.ns("ttft_us");
  request.decode_ns = data.ns("decode_us");
  request.e2e_ns = data.ns("e2e_us");
  request.preemptions = data.integer("preemptions");
}

void Trace::take(Trace&& later) {
  parts.insert(parts.end(), later.parts.begin(), later.parts.end());
  counts.merge(later.counts);
  events += later.events;
  dropped += later.dropped;
  if (first_ns < 0) first_ns = later.first_ns;
  last_ns = std::max(last_ns, later.last_ns);
  types.take(std::move(later.types), [](EventType& a, EventType& b) {
    a.count += b.count;
    a.known = b.known;
  });
  selected_backend.take(std::move(later.selected_backend), add_counts);
  selected_reason.take(std::move(later.selected_reason), add_counts);
  selected_op.take(std::move(later.selected_op), add_counts);
  internals.take(std::move(later.internals), append_samples);
  const auto append_series = [](auto& a, auto& b) {
    if (a.samples.empty()) return std::swap(a, b);
    append(a.samples, b.samples);
    a.steps.add(b.steps);
  };
  ops.take(std::move(later.ops), append_series);
  matmuls.take(std::move(later.matmuls), append_series);
  costs.take(std::move(later.costs), [](OpCost& a, OpCost& b) {
    if (a.calls == 0) return std::swap(a, b);
    a.calls += b.calls;
    a.ns += b.ns;
    a.bytes += b.bytes;
    a.flops += b.flops;
  });
  latest.take(std::move(later.latest), [](Facts& a, Facts& b) { a = std::move(b); });
  for (auto& [number, step] : later.steps) merge_steps(steps[number], step);
  for (auto& [id, request] : later.requests) {
    RequestRow& ours = requests[id];
    if (request.added_ns == 0) request.added_ns = ours.added_ns;
    if (!request.reason.empty() || ours.reason.empty()) ours = std::move(request);
  }
}

}  // namespace tinyvllm
