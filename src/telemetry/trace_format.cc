#include "telemetry/trace_format.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "telemetry/json_line.h"

namespace tinyvllm {
namespace {

// "linear_q4_1_avx2": what multiplies, what it reads, and for which machine.
std::string kernel_name(const OpCall& call, const char* backend) {
  std::string name = *call.kernel != '\0' ? call.kernel : call.op;
  name += '_';
  for (const char* c = dtype_name(call.dtype); *c != '\0'; ++c) {
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  const char* dash = std::strchr(backend, '-');
  return name + '_' + (dash == nullptr ? backend : dash + 1);
}

uintptr_t address(const char* text) { return reinterpret_cast<uintptr_t>(text); }

const char* scope_of(Phase phase) {
  return phase == Phase::kPrefill ? "Prompt Processing" : "Generation Loop";
}

// "Generation Loop/block_3/attention"; the head, a product outside the layers, is the step's
// output.
std::string path_of(const OpCall& call) {
  std::string path = scope_of(call.phase);
  if (call.layer >= 0) path += "/block_" + std::to_string(call.layer);
  path += '/';
  return path + (call.layer < 0 && call.matmul ? "generation_step_output" : call.op);
}

std::string with_layer(std::string name, int layer) {
  if (const size_t at = name.find("{}"); at != std::string::npos) {
    name.replace(at, 2, std::to_string(layer));
  }
  return name;
}

int64_t mean(const LoopTimes& times, int64_t ThreadTime::*part) {
  int64_t sum = 0;
  for (const ThreadTime& thread : times.threads) sum += thread.*part;
  return sum / std::max<int64_t>(1, static_cast<int64_t>(times.threads.size()));
}

// A line's text from the spans to the duration, which never changes from one call to the next.
void put_head(TextBuffer& text, const OpCall& call, const char* backend) {
  JsonLine(text)
      .text(",")
      .field("span_name", call.op)
      .open("event")
      .field("type", "GpuOpCompleted")
      .open("data")
      .field("op_name", path_of(call))
      .field("backend", backend)
      .text(",\"duration_us\":");
}

// From the step on: what changes with the shape alone, or never.
void put_tail(TextBuffer& text, const OpCompleted& op, const std::string& kernel) {
  const OpCall& call = op.call;
  text.clear();
  JsonLine json(text);
  json.text(",\"op\":\"").text(call.op).text("\",\"kernel\":\"").text(kernel);
  json.text("\",\"dtype\":\"").text(dtype_name(call.dtype)).text("\",\"phase\":\"");
  json.text(phase_name(call.phase)).text("\",\"layer\":").value(call.layer);
  if (call.matmul) {
    json.text(",\"batch\":1,\"m\":").value(call.rows).text(",\"n\":").value(call.out);
    json.text(",\"k\":").value(call.in).text(",\"tA\":0,\"tB\":1,\"rows\":").value(call.rows);
  } else {
    json.text(",\"out\":").value(call.out).text(",\"in\":").value(call.in);
    json.text(",\"rows\":").value(call.rows);
  }
  json.text(",\"bytes\":").value(call.bytes).text(",\"flops\":").value(call.flops);
  json.text(",\"threads\":").value(op.threads).text("}}}}\n");
}

}  // namespace

void TraceFormat::begin_line(JsonLine& json, const TraceRecord& at) {
  lines_ += 1;
  const auto put_span = [&](SpanId span) { span == 0 ? json.text("null") : json.value(span); };
  json.text("{\"timestamp\":").value(Micros{std::max<int64_t>(0, at.end_ns - start_ns_)});
  json.text(",\"span_id\":");
  put_span(at.span);
  json.text(",\"parent_span_id\":");
  put_span(at.parent);
}

// One line: begun here, its data filled by the caller, ended when it goes.
class TraceFormat::Line {
 public:
  Line(TraceFormat& format, const TraceRecord& at, std::string_view name, std::string_view type,
       TextBuffer& out)
      : json_(out) {
    format.begin_line(json_, at);
    json_.text(",\"span_name\":\"").text(name).text("\",\"event\":{\"type\":\"").text(type);
    json_.text("\",\"data\":{");
  }
  ~Line() { json_.text("}}}\n"); }
  JsonLine& data() { return json_; }

 private:
  JsonLine json_;
};

size_t TraceFormat::KeyHash::operator()(const OpKey& key) const {
  size_t hash = address(key.op) * 31 + address(key.kernel);
  hash = (hash * 31 + address(key.backend)) * 31 + static_cast<size_t>(key.in);
  return hash * 31 + (static_cast<size_t>(key.layer + 1) << 10) +
         (static_cast<size_t>(key.dtype) << 1) + static_cast<size_t>(key.phase);
}

size_t TraceFormat::KeyHash::operator()(const PartKey& key) const {
  return (address(key.parent) * 31 + address(key.name)) * 31 + static_cast<size_t>(key.layer + 1);
}

TraceFormat::OpText& TraceFormat::text_of(const OpCall& call, const char* backend) {
  const OpKey key{
      call.op, call.kernel, backend, call.dtype, call.phase, call.layer, call.matmul ? call.in : 0};
  OpText& text = op_texts_[key];
  if (text.head.empty()) {
    text.kernel = kernel_name(call, backend);
    put_head(text.head, call, backend);
  }
  return text;
}

// A choice of kernel is written when it is first seen; at level kernel, for every call.
void TraceFormat::write_choice(const TraceRecord& record, const OpCompleted& op,
                               const std::string& kernel, TextBuffer& out) {
  const OpCall& call = op.call;
  Line line(*this, record, call.op, "KernelBackendSelected", out);
  line.data().field("op_name", call.op).field("backend", op.backend);
  line.data().field("reason", *call.reason != '\0' ? call.reason : "OnlyAvailable");
  line.data().field("kernel", kernel).field("dtype", dtype_name(call.dtype));
}

void TraceFormat::write(const TraceRecord& record, const OpCompleted& op, TextBuffer& out) {
  OpText& text = text_of(op.call, op.backend);
  const bool is_new = text.tail.empty() && chosen_.emplace(text.kernel, op.call.op).second;
  if (is_new || level_ == TraceLevel::kKernel) write_choice(record, op, text.kernel, out);
  const OpShape shape{op.call.rows, op.call.out, op.call.in, op.call.bytes, op.call.flops};
  if (text.tail.empty() || text.shape != shape) {
    text.shape = shape;
    put_tail(text.tail, op, text.kernel);
  }
  JsonLine json(out);
  begin_line(json, record);
  json.text(text.head.view()).value(Micros{record.end_ns - record.begin_ns});
  json.text(",\"data\":{\"step\":").value(op.step).text(text.tail.view());
}

void TraceFormat::write(const TraceRecord& record, const DeviceTime& time, TextBuffer& out) {
  Line line(*this, record, time.name, "GpuOpCompleted", out);
  line.data().field("op_name", std::string(scope_of(time.phase)) + '/' + time.name);
  line.data().field("backend", time.backend);
  line.data().field("duration_us", Micros{record.end_ns - record.begin_ns}).open("data");
  line.data().field("phase", phase_name(time.phase)).field("step", time.step).close();
}

void TraceFormat::write(const TraceRecord& record, const PartCompleted& part, TextBuffer& out) {
  PartText& text = part_texts_[{part.parent, part.name, part.layer}];
  if (text.head.empty()) {
    const std::string name = with_layer(part.name, part.layer);
    JsonLine(text.head)
        .text(",")
        .field("span_name", name)
        .open("event")
        .field("type", "InternalKernelCompleted")
        .open("data")
        .field("parent_op_name", part.parent)
        .field("internal_kernel_name", name)
        .text(",\"duration_us\":");
    JsonLine(text.tail).text(",").field("layer", part.layer).text("}}}\n");
  }
  JsonLine json(out);
  begin_line(json, record);
  json.text(text.head.view()).value(Micros{record.end_ns - record.begin_ns});
  json.text(",\"step\":").value(part.step).text(text.tail.view());
}

// The loop's time is what its threads worked, on average, and what they stood waiting for the last
// one: drawn one after the other, which is how it went on average.
void TraceFormat::write(const TraceRecord& record, const LoopCompleted& completed,
                        TextBuffer& out) {
  const Loop& loop = *completed;
  const LoopTimes& times = loop.times;
  TraceRecord at{record.level, record.begin_ns, record.begin_ns, record.span, record.parent, {}};
  {
    Line line(*this, at, times.what, "GpuKernelDispatched", out);
    line.data().field("kernel_name", text_of(loop.call, loop.backend).kernel);
    line.data().field("op_name", path_of(loop.call));
    line.data().field("thread_groups", times.tasks);
  }
  const int64_t duration = record.end_ns - record.begin_ns;
  const int64_t worked = std::min(duration, mean(times, &ThreadTime::busy_ns));
  const auto part = [&](const char* name, int64_t begin, int64_t end) {
    at.end_ns = end;
    Line line(*this, at, name, "InternalKernelCompleted", out);
    JsonLine& data = line.data();
    data.field("parent_op_name", loop.call.op).field("internal_kernel_name", name);
    data.field("duration_us", Micros{end - begin});
    data.field("step", loop.step).field("layer", loop.call.layer);
    if (name != times.what) return;
    const auto busy = [](const ThreadTime& t) { return Micros{t.busy_ns}; };
    const auto wait = [&](const ThreadTime& t) {
      return Micros{std::max<int64_t>(0, duration - t.busy_ns)};
    };
    data.list("busy_us", times.threads, busy).list("wait_us", times.threads, wait);
    data.list("tasks", times.threads, [](const ThreadTime& t) { return t.tasks; });
  };
  part(times.what, record.begin_ns, record.begin_ns + worked);
  part("barrier_sync", record.begin_ns + worked, record.end_ns);
}

void TraceFormat::write(const TraceRecord& record, const ForwardStep& step, TextBuffer& out) {
  Line line(*this, record, "forward", ForwardStep::kType, out);
  line.data().field("total_bytes", step.weight_bytes + step.kv_read_bytes + step.kv_written_bytes);
  line.data().open("breakdown").field("weights", step.weight_bytes);
  line.data().field("kv_read", step.kv_read_bytes).field("kv_written", step.kv_written_bytes);
  line.data().close().field("step", step.step).field("tokens", step.tokens);
  line.data().field("phase", phase_name(step.phase));
  line.data().field("duration_us", Micros{record.end_ns - record.begin_ns});
}

void TraceFormat::write(const TraceRecord& record, const CacheAccess& access, TextBuffer& out) {
  Line line(*this, record, "prefix", "ResourceCacheAccess", out);
  line.data().field("cache_key", "prefix/" + std::to_string(access.sequence));
  line.data().field("hit", access.bytes > 0).field("bytes", access.bytes);
}

void TraceFormat::write(const TraceRecord& record, const PrefixCache& cache, TextBuffer& out) {
  {
    Line line(*this, record, "prefix", PrefixCache::kType, out);
    cache.fields([&](const char* name, const auto& value) { line.data().field(name, value); });
  }
  Line line(*this, record, "prefix", "ResourceCacheSummary", out);
  line.data().field("cache", "prefix").field("hits", cache.hits);
  line.data().field("misses", cache.queries - cache.hits);
  const auto queries = static_cast<double>(std::max<uint64_t>(1, cache.queries));
  line.data().field("hit_rate", static_cast<double>(cache.hits) / queries);
  line.data().field("size", cache.size);
}

void TraceFormat::write(const TraceRecord& record, const Note& note, TextBuffer& out) {
  const std::string_view object = note.data;
  Line line(*this, record, "run", note.type, out);
  line.data().raw({}, object.substr(1, object.size() - 2));  // its fields, without the braces
}

// The rest: what lasted says so first, then its fields.
template <class Event>
void TraceFormat::write(const TraceRecord& record, const Event& event, TextBuffer& out) {
  Line line(*this, record, Event::kSpan, Event::kType, out);
  if (record.end_ns > record.begin_ns) {
    line.data().field("duration_us", Micros{record.end_ns - record.begin_ns});
  }
  event.fields([&](const char* name, const auto& value) { line.data().field(name, value); });
}

void TraceFormat::append(const TraceRecord& record, TextBuffer& out) {
  std::visit([&](const auto& event) { write(record, event, out); }, record.event);
}

}  // namespace tinyvllm
