#include "telemetry/tracer.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>

#include "base/stopwatch.h"

namespace tinyvllm {
namespace {

// Between two looks at the rings. Nobody wakes the thread for a record: that would be a system call
// on the step's path. Where every core has a thread of the steps', waking up takes a core from one
// of them, and others may wait for it: seldom is better.
std::chrono::milliseconds interval(TraceLevel level) {
  if (level == TraceLevel::kKernel) return std::chrono::milliseconds(50);
  return std::chrono::milliseconds(level == TraceLevel::kOp ? 100 : 200);
}

std::atomic<uint64_t> tracers{0};  // so far, to tell their threads' rings apart

int64_t own_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Signals are for the threads that people wait for.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

const char* level_name(TraceLevel level) {
  constexpr const char* kNames[] = {"off", "step", "op", "kernel"};
  return kNames[static_cast<size_t>(level)];
}

std::optional<TraceLevel> level_from_name(std::string_view name) {
  for (const TraceLevel level :
       {TraceLevel::kOff, TraceLevel::kStep, TraceLevel::kOp, TraceLevel::kKernel}) {
    if (name == level_name(level)) return level;
  }
  return std::nullopt;
}

Tracer::Tracer(size_t places) : places_(places), id_(tracers.fetch_add(1) + 1) {}

Tracer::~Tracer() {
  if (thread_.joinable()) {
    {
      const std::scoped_lock lock(wake_mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  drain();
}

// The ring is the thread's as long as it lives, and the tracer's until it is empty.
Tracer::Records& Tracer::own_ring() {
  struct Own {
    uint64_t tracer = 0;
    std::shared_ptr<Records> ring;
  };
  thread_local Own own;
  if (own.tracer != id_) {
    own = {id_, std::make_shared<Records>(places_)};
    const std::scoped_lock lock(rings_mutex_);
    rings_.push_back(own.ring);
  }
  return *own.ring;
}

void Tracer::note(const char* type, std::string data) {
  if (!on(TraceLevel::kStep)) return;
  const int64_t now = now_ns();
  add(TraceLevel::kStep, now, now, kRun, 0, Note{type, std::move(data)});
}

const char* Tracer::intern(const std::string& text) {
  const std::scoped_lock lock(rings_mutex_);
  return interned_.insert(text).first->c_str();
}

void Tracer::set_level() {
  TraceLevel level = TraceLevel::kOff;
  for (const auto& sink : sinks_) level = std::max(level, sink->level());
  level_.store(held_ ? TraceLevel::kOff : level, std::memory_order_relaxed);
}

void Tracer::hold(bool held) {
  const std::scoped_lock lock(sinks_mutex_);
  held_ = held;
  set_level();
}

void Tracer::attach(std::shared_ptr<TraceSink> sink) {
  drain();  // what was noted for others
  const std::scoped_lock lock(sinks_mutex_);
  sinks_.push_back(std::move(sink));
  set_level();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  {
    const std::scoped_lock wake_lock(wake_mutex_);
    level_changed_ = true;
  }
  wake_.notify_one();
}

void Tracer::detach(const std::shared_ptr<TraceSink>& sink) {
  drain();
  const std::scoped_lock lock(sinks_mutex_);
  std::erase(sinks_, sink);
  set_level();
}

void Tracer::hand_out(const TraceRecord& record) {
  for (const auto& sink : sinks_) {
    if (record.level <= sink->level() && !sink->is_over()) sink->take(record);
  }
}

// Most of what a trace costs is making lines of records. A thread of the steps' that would only
// spin does it for nothing; what it leaves is for the tracer's own.
bool Tracer::do_some(const std::function<bool()>& still_waiting) {
  if (!on(TraceLevel::kStep)) return false;
  const std::unique_lock lock(sinks_mutex_, std::try_to_lock);
  const std::unique_lock rings_lock(rings_mutex_, std::try_to_lock);
  if (!lock || !rings_lock) return false;
  const auto nobody_waits = [&] {
    return std::ranges::none_of(
        sinks_, [](const auto& sink) { return sink->may_wait() || sink->is_full(); });
  };
  bool did_some = false;
  for (const auto& ring : rings_) {
    while (nobody_waits() && still_waiting()) {
      if (ring->drain([&](TraceRecord&& record) { hand_out(record); }, 1) == 0) break;
      did_some = true;
    }
  }
  return did_some;
}

// Whoever holds the sinks is the one reader of the rings.
void Tracer::drain() {
  const std::scoped_lock lock(sinks_mutex_);
  const int64_t begin_ns = own_cpu_ns();
  std::vector<std::shared_ptr<Records>> rings;
  {
    const std::scoped_lock rings_lock(rings_mutex_);
    // One that its thread has left behind goes once it is empty: what is drained now is all of it.
    std::erase_if(rings_, [&](const std::shared_ptr<Records>& ring) {
      const bool left_behind = ring.use_count() == 1;
      if (left_behind) std::atomic_thread_fence(std::memory_order_acquire);
      rings.push_back(ring);
      return left_behind;
    });
  }
  for (const auto& ring : rings) {
    ring->drain([&](TraceRecord&& record) {
      hand_out(record);
      for (const auto& sink : sinks_) {
        if (sink->is_full()) sink->pause();
      }
    });
    if (const uint64_t dropped = ring->take_dropped(); dropped > 0) {
      const int64_t now = now_ns();
      hand_out({TraceLevel::kStep, now, now, kRun, 0, RecordsDropped{dropped}});
    }
  }
  for (const auto& sink : sinks_) {
    if (!sink->is_over()) sink->pause();
  }
  const size_t over = std::erase_if(sinks_, [](const auto& sink) { return sink->is_over(); });
  if (over > 0) set_level();
  writing_ns_.fetch_add(own_cpu_ns() - begin_ns, std::memory_order_relaxed);
}

void Tracer::run() {
  block_signals();
  for (;;) {
    {
      std::unique_lock lock(wake_mutex_);
      wake_.wait_for(lock, interval(level()), [&] { return stopping_ || level_changed_; });
      if (stopping_) return;
      level_changed_ = false;
    }
    drain();
  }
}

}  // namespace tinyvllm
