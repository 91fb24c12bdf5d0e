// Writes trace events while the log streams by. What lasted becomes a complete event (ph X) on a
// track of its kind. Events of one track must nest, so that what overlaps its neighbour goes to a
// second lane of the track. Requests overlap freely and are asynchronous events (b, e); tokens and
// KV blocks are counters (C).
#include "report/analyze/perfetto.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/json_writer.h"
#include "base/strings.h"

namespace tinyvllm {
namespace {

constexpr int kProcess = 1;
constexpr size_t kLanes = 8;
constexpr const char* kTracks[] = {"steps", "forward", "layers", "ops", "host", "inside ops"};
enum Track { kSteps, kForward, kLayers, kOps, kHost, kInsideOps };

// Records come in the order in which they ended, children before their parents.
class Lane {
 public:
  // Whether [begin, end] nests with all before it; if so it is one of them now.
  bool add(int64_t begin, int64_t end) {
    if (!open_.empty() && open_.back().second > end) return false;  // out of order
    size_t keep = open_.size();
    while (keep > 0 && open_[keep - 1].first >= begin) --keep;
    if (keep > 0 && open_[keep - 1].second > begin) return false;
    open_.resize(keep);
    open_.emplace_back(begin, end);
    if (open_.size() > 64) open_.erase(open_.begin(), open_.end() - 32);  // long over
    return true;
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> open_;
};

Track track_of(const Record& record) {
  if (record.type == "StepCompleted") return kSteps;
  if (record.type == "GpuOpCompleted") {
    const bool forward = record.data.text("op_name").find("/cb_gpu") != std::string_view::npos;
    return forward ? kForward : kOps;
  }
  const std::string_view name = record.data.text("internal_kernel_name");
  const std::string_view parent = record.data.text("parent_op_name");
  if (name.starts_with("block_") && name.ends_with("_total")) return kLayers;
  const bool engine = parent == "generation_loop" || parent == "sampling" || parent == "decoding";
  return engine ? kHost : kInsideOps;
}

std::string_view name_of(const Record& record, Track track) {
  if (track == kSteps) return "step";
  if (track == kForward) return "forward";
  if (track != kOps) return record.data.text("internal_kernel_name");
  const std::string_view path = record.data.text("op_name");
  return path.substr(path.rfind('/') + 1);
}

class EventWriter {
 public:
  explicit EventWriter(std::FILE* file) : file_(file) {
    std::fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", file_);
  }

  void add(const Record& record) {
    const bool lasted = record.type == "StepCompleted" || record.type == "GpuOpCompleted" ||
                        record.type == "InternalKernelCompleted";
    const std::optional<int64_t> ns = record.data.nanoseconds("duration_us");
    const bool wait = record.data.text("op_name").find("cb_wait") != std::string_view::npos;
    if (record.type == "StepPlan") {
      counter(record, "tokens", {"prefill_tokens", "decode_tokens"});
      counter(record, "requests", {"waiting", "running"});
    } else if (record.type == "KvBlocks") {
      counter(record, "KV blocks", {"used", "cached", "free"});
    } else if (wait) {
      counter(record, "barrier wait", {"duration_us"});  // a sum over the step, not a time in it
    } else if (lasted && ns) {
      complete(record, *ns);
    } else if (record.type == "RequestFinished") {
      request(record, record.data.ns("e2e_us"));
    }
  }

  // Names for the tracks that were used, and the end of the file.
  void finish() {
    name("process_name", 0, "tinyvllm");
    for (size_t track = 0; track < std::size(kTracks); ++track) {
      for (size_t lane = 0; lane < lanes_[track].size(); ++lane) {
        const std::string suffix = lane == 0 ? "" : str_cat(" (", lane + 1, ")");
        name("thread_name", thread_of(track, lane), kTracks[track] + suffix);
      }
    }
    std::fputs("\n]}\n", file_);
  }

 private:
  static size_t thread_of(size_t track, size_t lane) { return track * kLanes + lane + 1; }

  JsonWriter begin(std::string_view event_name, const char* phase, int64_t ns, size_t thread) {
    JsonWriter json;
    json.begin_object().field("name", event_name.empty() ? "?" : event_name).field("ph", phase);
    json.field("ts", static_cast<double>(ns) / 1e3).field("pid", kProcess).field("tid", thread);
    return json;
  }
  void write(JsonWriter& json) {
    json.end_object();
    std::fputs(first_ ? "" : ",\n", file_);
    std::fputs(json.str().c_str(), file_);
    first_ = false;
  }

  void name(const char* kind, size_t thread, const std::string& text) {
    JsonWriter json = begin(kind, "M", 0, thread);
    json.key("args").begin_object().field("name", text).end_object();
    write(json);
    if (thread == 0) return;
    JsonWriter order = begin("thread_sort_index", "M", 0, thread);
    order.key("args").begin_object().field("sort_index", thread).end_object();
    write(order);
  }

  void complete(const Record& record, int64_t ns) {
    const Track track = track_of(record);
    const int64_t end = record.timestamp_ns, start = std::max<int64_t>(0, end - ns);
    std::vector<Lane>& lanes = lanes_[track];
    size_t lane = 0;
    while (lane < lanes.size() && !lanes[lane].add(start, end)) ++lane;
    if (lane == kLanes) return async(record, name_of(record, track), kTracks[track], start, end);
    if (lane == lanes.size()) lanes.emplace_back().add(start, end);
    JsonWriter json = begin(name_of(record, track), "X", start, thread_of(track, lane));
    json.field("dur", static_cast<double>(end - start) / 1e3).field("cat", kTracks[track]);
    args(record, json);
    write(json);
  }

  void request(const Record& record, int64_t ns) {
    std::string id = "request ";
    record.data.write("request_id", {}, id);
    const int64_t end = record.timestamp_ns;
    async(record, id, "request", std::max<int64_t>(0, end - ns), end);
  }

  void async(const Record& record, std::string_view what, const char* category, int64_t start,
             int64_t end) {
    ++ids_;
    for (const bool opens : {true, false}) {
      JsonWriter json = begin(what, opens ? "b" : "e", opens ? start : end, 1);
      json.field("cat", category).field("id", ids_);
      if (opens) args(record, json);
      write(json);
    }
  }

  void counter(const Record& record, const char* what, std::initializer_list<const char*> keys) {
    JsonWriter json = begin(what, "C", record.timestamp_ns, 0);
    json.key("args").begin_object();
    for (const char* key : keys) json.field(key, record.data.number_or(key, 0));
    json.end_object();
    write(json);
  }

  static void args(const Record& record, JsonWriter& json) {
    json.key("args").begin_object();
    for (const Fields::Field& field : record.data.all()) {
      const bool repeats = !field.scope.empty() && record.data.find(field.key, {}) != nullptr;
      if (repeats) continue;
      json.key(field.key);
      std::isnan(field.number) ? json.value(field.text) : json.value(field.number);
    }
    json.end_object();
  }

  std::FILE* file_;
  bool first_ = true;
  int64_t ids_ = 0;
  std::vector<Lane> lanes_[std::size(kTracks)];
};

}  // namespace

Status write_perfetto(const Trace& trace, const std::string& out, const Progress& progress) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> sink(std::fopen(out.c_str(), "wb"),
                                                             std::fclose);
  if (!sink) return error(printable(out, 4096), ": ", std::strerror(errno));
  EventWriter writer(sink.get());
  TRY(scan_again(
      trace, [&](const Record& record) { writer.add(record); }, progress));
  writer.finish();
  if (std::fflush(sink.get()) != 0 || std::ferror(sink.get()) != 0) {
    return error(printable(out, 4096), ": ", std::strerror(errno));
  }
  return Status();
}

}  // namespace tinyvllm
