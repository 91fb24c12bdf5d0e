// Records → lines of JSON:
//
//   {"timestamp":T,"span_id":N,"parent_span_id":N,"span_name":"…","event":{"type":"…","data":{…}}}
//
// T is in µs since the trace began; of something that lasted, its end, and data.duration_us how
// long it took. One record may be several lines. docs/TRACING.md lists the types.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "telemetry/trace_events.h"

namespace tinyvllm {

class JsonLine;

class TraceFormat {
 public:
  TraceFormat(TraceLevel level, int64_t start_ns) : level_(level), start_ns_(start_ns) {}

  void append(const TraceRecord& record, std::string& out);
  uint64_t lines() const { return lines_; }  // so far

 private:
  class Line;
  void begin_line(JsonLine& json, const TraceRecord& at);
  // An op is called again and again: its names are made once.
  struct OpKey {
    const char* op;
    const char* kernel;
    const char* backend;
    DType dtype;
    Phase phase;
    int layer;
    bool operator==(const OpKey&) const = default;
  };
  struct OpKeyHash {
    size_t operator()(const OpKey& key) const;
  };
  struct OpNames {
    std::string kernel;  // "linear_q4_1_avx2"
    std::string path;    // "Generation Loop/block_3/linear_add"
    // A line's text around its numbers: from the spans to the duration, and from there to the
    // sizes.
    std::string head;
    std::string middle;
  };
  const OpNames& names_of(const OpCall& call, const char* backend);

  void write(const TraceRecord& record, const OpCompleted& op, std::string& out);
  void write(const TraceRecord& record, const DeviceTime& time, std::string& out);
  void write(const TraceRecord& record, const PartCompleted& part, std::string& out);
  void write(const TraceRecord& record, const LoopCompleted& loop, std::string& out);
  void write(const TraceRecord& record, const ForwardStep& step, std::string& out);
  void write(const TraceRecord& record, const CacheAccess& access, std::string& out);
  void write(const TraceRecord& record, const PrefixCache& cache, std::string& out);
  void write(const TraceRecord& record, const Note& note, std::string& out);
  template <class Event>
  void write(const TraceRecord& record, const Event& event, std::string& out);
  void write_choice(const TraceRecord& record, const OpCompleted& op, std::string& out);

  const TraceLevel level_;
  const int64_t start_ns_;
  uint64_t lines_ = 0;
  std::unordered_map<OpKey, OpNames, OpKeyHash> names_;
  std::map<std::pair<const char*, int>, std::string> part_names_;  // with their layer
  std::set<std::pair<std::string, const char*>> chosen_;  // kernels and ops already written
};

}  // namespace tinyvllm
