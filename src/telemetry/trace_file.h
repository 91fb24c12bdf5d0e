// A trace on disk, or in a pipe: lines of JSON, in parts of a given size if asked for (FILE,
// FILE.1, FILE.2, …; each begins with the same head, so that it can be read alone). When it cannot
// be written any more, because the disk is full or nobody reads the pipe, tracing ends with one
// warning and the run goes on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "telemetry/trace_cost.h"
#include "telemetry/trace_format.h"
#include "telemetry/tracer.h"

namespace tinyvllm {

struct TraceFileOptions {
  std::string path;
  TraceLevel level = TraceLevel::kStep;
  uint64_t rotate_bytes = 0;  // 0: one part
  std::vector<Note> head;     // first lines of every part
};

class TraceFile final : public TraceSink {
 public:
  static Result<std::shared_ptr<TraceFile>> open(const TraceFileOptions& options);
  ~TraceFile() override;

  TraceLevel level() const override { return options_.level; }
  void take(const TraceRecord& record) override;
  bool may_wait() const override { return false; }
  bool is_full() const override { return buffer_.size() >= most_buffered_; }
  void pause() override;
  bool is_over() const override { return over_; }

  // The last lines: what tracing cost, and what was traced. `writing` is how much of the time that
  // formatting and writing took was taken from the steps.
  void finish(const TraceCost& cost, double writing_ns);

 private:
  explicit TraceFile(const TraceFileOptions& options);
  Status open_part();
  void write_out();
  void end_with(const std::string& problem);
  void add_note(const char* type, std::string data);

  const TraceFileOptions options_;
  const int64_t start_ns_;
  TraceFormat format_;
  const size_t most_buffered_;
  TextBuffer buffer_;  // formatted and not yet written
  int fd_ = -1;
  int parts_ = 0;
  uint64_t part_bytes_ = 0;
  bool over_ = false;

  uint64_t records_ = 0, dropped_ = 0, steps_ = 0;
  int64_t step_ns_ = 0;  // of all steps together
};

// A file on a tracer, as long as this lives.
class TraceLog {
 public:
  static Result<std::unique_ptr<TraceLog>> open(Tracer& tracer, const TraceFileOptions& options,
                                                int threads);
  ~TraceLog();

 private:
  TraceLog(Tracer& tracer, int threads, std::shared_ptr<TraceFile> file)
      : tracer_(tracer),
        threads_(threads),
        cost_(measure_trace_cost()),
        writing_before_ns_(tracer.writing_ns()),
        file_(std::move(file)) {}

  Tracer& tracer_;
  const int threads_;  // that steps run on
  const TraceCost cost_;
  const int64_t writing_before_ns_;
  const std::shared_ptr<TraceFile> file_;
};

}  // namespace tinyvllm
