// Reads a log on all cores: about equal parts side by side, their tables merged in the file's
// order.
#include <atomic>
#include <optional>

#include "base/thread_pool.h"
#include "report/analyze/trace.h"

namespace tinyvllm {
namespace {

constexpr int64_t kWorthAThread = 4 << 20;  // a smaller log is read before a second thread helps

}  // namespace

Result<Trace> read_trace(const std::string& path, const Progress& progress) {
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
  return trace;
}

}  // namespace tinyvllm
