#include "telemetry/trace_file.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/log.h"
#include "base/stopwatch.h"

namespace tinyvllm {
namespace {

// Lines that wait to be written: those of a tenth of a second, and fewer where parts are counted.
constexpr size_t kMostBuffered = 4 << 20;
constexpr size_t kMostOfAPart = 1 << 18;
// How long a pipe may be full without anybody reading before tracing ends.
constexpr int kPatienceMs = 2000;

// Writing to a pipe that nobody reads is an error of `write` while this lives, and no signal.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipe() {
    const timespec now{};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_;
};

// Empty when all was written.
std::string write_all(int fd, std::string_view bytes) {
  const NoBrokenPipe guard;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(fd, bytes.data() + done, bytes.size() - done);
    if (count >= 0) {
      done += static_cast<size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return std::strerror(errno);
    pollfd writable{fd, POLLOUT, 0};
    if (poll(&writable, 1, kPatienceMs) == 0) return "its reader takes nothing";
  }
  return "";
}

std::string iso_time() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

TraceFile::TraceFile(const TraceFileOptions& options)
    : options_(options),
      start_ns_(now_ns()),
      format_(options.level, start_ns_),
      most_buffered_(options.rotate_bytes == 0 ? kMostBuffered : kMostOfAPart) {}

TraceFile::~TraceFile() {
  if (fd_ >= 0) close(fd_);
}

Result<std::shared_ptr<TraceFile>> TraceFile::open(const TraceFileOptions& options) {
  std::shared_ptr<TraceFile> file(new TraceFile(options));
  TRY(file->open_part());
  return file;
}

Status TraceFile::open_part() {
  const std::string path = parts_ == 0 ? options_.path : str_cat(options_.path, ".", parts_);
  if (fd_ >= 0) close(fd_);
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    return error("cannot write '", printable(path, 4096), "': ", std::strerror(errno));
  }
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);  // a pipe's reader is not waited for
  parts_ += 1;
  part_bytes_ = 0;
  for (const Note& note : options_.head) {
    // The date belongs to the head, and a part says when it began.
    if (std::strcmp(note.type, "TraceStarted") != 0) {
      add_note(note.type, note.data);
      continue;
    }
    std::string data = note.data;
    data.insert(data.size() - 1,
                str_cat(",\"started\":\"", iso_time(), "\",\"part\":", parts_ - 1));
    add_note(note.type, std::move(data));
  }
  return Status();
}

void TraceFile::add_note(const char* type, std::string data) {
  const int64_t now = now_ns();
  format_.append({TraceLevel::kStep, now, now, Tracer::kRun, 0, Note{type, std::move(data)}},
                 buffer_);
}

void TraceFile::take(const TraceRecord& record) {
  records_ += 1;
  if (std::holds_alternative<StepCompleted>(record.event)) {
    steps_ += 1;
    step_ns_ += record.end_ns - record.begin_ns;
  } else if (const auto* dropped = std::get_if<RecordsDropped>(&record.event)) {
    dropped_ += dropped->count;
  }
  format_.append(record, buffer_);
}

void TraceFile::pause() { write_out(); }

void TraceFile::write_out() {
  if (over_ || buffer_.empty()) return;
  const std::string problem = write_all(fd_, buffer_.view());
  part_bytes_ += buffer_.size();
  buffer_.clear();
  if (!problem.empty()) return end_with(problem);
  if (options_.rotate_bytes == 0 || part_bytes_ < options_.rotate_bytes) return;
  const Status opened = open_part();
  if (!opened.ok()) end_with(opened.message());
}

void TraceFile::end_with(const std::string& problem) {
  over_ = true;
  buffer_.clear();
  log_warning("trace '", printable(options_.path, 4096), "': ", problem, "; tracing ends here, ",
              records_, " records in");
}

void TraceFile::finish(const TraceCost& cost, double writing_ns) {
  if (over_) return;
  const auto steps = static_cast<double>(std::max<uint64_t>(1, steps_));
  const double spent = static_cast<double>(records_) * cost.ns_per_record + writing_ns;
  const double traced = static_cast<double>(step_ns_);
  const double untraced = std::max(1.0, traced - spent);
  JsonWriter calibration;
  calibration.begin_object().field("ns_per_record", cost.ns_per_record);
  calibration.field("ns_per_span", cost.ns_per_span);
  calibration.field("records_per_step", static_cast<double>(records_) / steps);
  calibration.field("overhead_percent", steps_ == 0 ? 0 : 100 * (traced / untraced - 1));
  calibration.field("step_us_untraced", steps_ == 0 ? 0 : untraced / steps / 1e3).end_object();
  add_note("TraceCalibration", calibration.str());
  JsonWriter end;
  end.begin_object().field("records", format_.lines() + 1).field("dropped", dropped_);
  end.field("wall_us", static_cast<double>(now_ns() - start_ns_) / 1e3).end_object();
  add_note("TraceEnded", end.str());
  const std::string problem = write_all(fd_, buffer_.view());
  if (!problem.empty()) end_with(problem);
  over_ = true;
}

Result<std::unique_ptr<TraceLog>> TraceLog::open(Tracer& tracer, const TraceFileOptions& options,
                                                 int threads) {
  TRY_ASSIGN(std::shared_ptr<TraceFile> file, TraceFile::open(options));
  std::unique_ptr<TraceLog> log(new TraceLog(tracer, threads, std::move(file)));
  tracer.attach(log->file_);
  return log;
}

// The tracer's thread works beside the steps. Where every core has a thread of theirs, it takes its
// time from one of them, and the others soon wait for that one.
TraceLog::~TraceLog() {
  const auto writing = static_cast<double>(tracer_.writing_ns() - writing_before_ns_);
  tracer_.detach(file_);
  const bool cores_to_spare = threads_ < static_cast<int>(std::thread::hardware_concurrency());
  file_->finish(cost_, cores_to_spare ? 0 : writing);
}

}  // namespace tinyvllm
