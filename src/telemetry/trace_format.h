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
#include <tuple>
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
  // An op is called again and again: most of its line is made once.
  struct OpKey {
    const char* op;
    const char* kernel;
    const char* backend;
    DType dtype;
    Phase phase;
    int layer;
    int64_t in;  // of a product: a layer has several of one kind
    bool operator==(const OpKey&) const = default;
  };
  struct OpKeyHash {
    size_t operator()(const OpKey& key) const;
  };
  struct OpShape {
    int64_t rows = 0, out = 0, in = 0;
    double bytes = 0, flops = 0;
    bool operator==(const OpShape&) const = default;
  };
  struct OpText {
    std::string kernel;  // "linear_q4_1_avx2"
    // A line's text around its numbers; the end is as the last one with that shape had it.
    std::string head;
    std::string middle;
    std::string tail;
    OpShape shape;
    OpKey key;
    OpText* next = nullptr;  // that followed it the last time: steps repeat themselves
  };
  OpText& text_of(const OpCall& call, const char* backend);

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
  void write_choice(const TraceRecord& record, const OpCompleted& op, const std::string& kernel,
                    std::string& out);

  const TraceLevel level_;
  const int64_t start_ns_;
  uint64_t lines_ = 0;
  std::unordered_map<OpKey, OpText, OpKeyHash> op_texts_;
  OpText* last_op_ = nullptr;
  struct PartText {
    std::string head;  // from the spans to the duration
    std::string tail;  // from the step on
  };
  using PartKey = std::tuple<const char*, const char*, int>;  // parent, name, layer
  std::map<PartKey, PartText> part_texts_;
  std::set<std::pair<std::string, const char*>> chosen_;  // kernels and ops already written
};

}  // namespace tinyvllm
