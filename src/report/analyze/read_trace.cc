// Reads a log on all cores: about equal parts side by side, their tables merged in the file's
// order.
#include <atomic>
#include <optional>

#include "base/thread_pool.h"
#include "report/analyze/trace.h"

namespace tinyvllm {
namespace {

constexpr int64_t kWorthAThread = 4 << 20;  // a smaller log is read before a second thread helps

Result<Trace> read_part(const std::string& path, const Progress& progress) {
  TRY_ASSIGN(const LogFile file, LogFile::open(path));
  const bool alone = !file.seekable() || file.size() < kWorthAThread;
  const int threads = alone ? 1 : default_thread_count();
  const std::vector<int64_t> starts = file.split(threads);

  std::vector<Trace> parts(starts.size() - 1);
  std::vector<std::optional<Error>> errors(parts.size());
  std::atomic<int64_t> bytes{0};
  ThreadPool pool(threads);
  pool.parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t task, int thread) {
    const auto part = static_cast<size_t>(task);
    Result<ScanCounts> counts = file.scan(
        starts[part], starts[part + 1], [&](const Record& record) { parts[part].add(record); },
        [&](int64_t read) {
          const int64_t done = bytes.fetch_add(read) + read;
          if (thread == 0 && progress && file.seekable()) progress(done, file.size());
        });
    if (counts.ok()) {
      parts[part].counts = counts.value();
    } else {
      errors[part] = counts.error();
    }
  });
  for (const std::optional<Error>& problem : errors) {
    if (problem) return error(printable(path, 4096), ": ", problem->message);
  }
  Trace trace = std::move(parts.front());
  for (size_t part = 1; part < parts.size(); ++part) trace.take(std::move(parts[part]));
  trace.parts = {path};
  return trace;
}

// Whether the file is the next part of this run, and not one that an earlier run left behind.
bool continues(const Trace& trace, const std::string& path) {
  if (trace.latest.find("TraceStarted") == nullptr || trace.latest.find("TraceEnded") != nullptr) {
    return false;
  }
  const Result<LogFile> file = LogFile::open(path);
  if (!file.ok() || !file.value().seekable()) return false;
  bool begins = false;
  const auto look = [&](const Record& record) {
    begins |= record.type == "TraceStarted" && record.timestamp_ns >= trace.last_ns &&
              record.data.integer("part") == static_cast<int64_t>(trace.parts.size());
  };
  const Result<ScanCounts> counts = file.value().scan(0, 1, look);  // its first line
  return counts.ok() && begins;
}

}  // namespace

Result<Trace> read_trace(const std::string& path, const Progress& progress) {
  TRY_ASSIGN(Trace trace, read_part(path, progress));
  for (std::string next; continues(trace, next = str_cat(path, ".", trace.parts.size()));) {
    TRY_ASSIGN(Trace part, read_part(next, progress));
    trace.take(std::move(part));
  }
  return trace;
}

Status scan_again(const Trace& trace, const LogFile::Visit& visit, const Progress& progress) {
  for (const std::string& path : trace.parts) {
    TRY_ASSIGN(const LogFile file, LogFile::open(path));
    if (!file.seekable()) return error(printable(path, 4096), ": must be a file, to be read twice");
    int64_t done = 0;
    TRY(file.scan(0, file.size(), visit, [&](int64_t bytes) {
      done += bytes;
      if (progress) progress(done, file.size());
    }));
  }
  return Status();
}

}  // namespace tinyvllm
