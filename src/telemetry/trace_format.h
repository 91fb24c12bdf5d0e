// Records → lines of JSON:
//
//   {"timestamp":T,"span_id":N,"parent_span_id":N,"span_name":"…","event":{"type":"…","data":{…}}}
//
// T is in µs since the trace began; of something that lasted, its end, and data.duration_us how
// long it took. One record may be several lines. docs/TRACING.md lists the types.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "telemetry/repeated.h"
#include "telemetry/text_buffer.h"
#include "telemetry/trace_events.h"

namespace tinyvllm {

class JsonLine;

class TraceFormat {
 public:
  TraceFormat(TraceLevel level, int64_t start_ns) : level_(level), start_ns_(start_ns) {}

  void append(const TraceRecord& record, TextBuffer& out);
  uint64_t lines() const { return lines_; }  // so far

 private:
  class Line;
  void begin_line(JsonLine& json, const TraceRecord& at);
  // An op is called again and again, and a part comes with every step: most of a line is made once.
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
  struct OpShape {
    int64_t rows = 0, out = 0, in = 0;
    double bytes = 0, flops = 0;
    bool operator==(const OpShape&) const = default;
  };
  struct OpText {
    std::string kernel;  // "linear_q4_1_avx2"
    // A line's text around its numbers; the end is as the last one with that shape had it.
    TextBuffer head;
    TextBuffer tail;
    OpShape shape;
  };
  struct PartKey {
    const char* parent;
    const char* name;
    int layer;
    bool operator==(const PartKey&) const = default;
  };
  struct PartText {
    TextBuffer head;  // from the spans to the duration
    TextBuffer tail;  // from the step on
  };
  struct KeyHash {
    size_t operator()(const OpKey& key) const;
    size_t operator()(const PartKey& key) const;
  };
  OpText& text_of(const OpCall& call, const char* backend);

  void write(const TraceRecord& record, const OpCompleted& op, TextBuffer& out);
  void write(const TraceRecord& record, const DeviceTime& time, TextBuffer& out);
  void write(const TraceRecord& record, const PartCompleted& part, TextBuffer& out);
  void write(const TraceRecord& record, const LoopCompleted& loop, TextBuffer& out);
  void write(const TraceRecord& record, const ForwardStep& step, TextBuffer& out);
  void write(const TraceRecord& record, const CacheAccess& access, TextBuffer& out);
  void write(const TraceRecord& record, const PrefixCache& cache, TextBuffer& out);
  void write(const TraceRecord& record, const Note& note, TextBuffer& out);
  template <class Event>
  void write(const TraceRecord& record, const Event& event, TextBuffer& out);
  void write_choice(const TraceRecord& record, const OpCompleted& op, const std::string& kernel,
                    TextBuffer& out);

  const TraceLevel level_;
  const int64_t start_ns_;
  uint64_t lines_ = 0;
  Repeated<OpKey, OpText, KeyHash> op_texts_;
  Repeated<PartKey, PartText, KeyHash> part_texts_;
  std::set<std::pair<std::string, const char*>> chosen_;  // kernels and ops already written
};

}  // namespace tinyvllm
