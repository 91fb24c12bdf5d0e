// Takes records of what happens from any thread and hands them, on a thread of its own, to those
// who want them: a file, a terminal, a profile. One per Runtime. While nobody wants anything it is
// off, and being off costs one comparison wherever something could be noted.
//
// A thread that notes something puts it into a ring of its own: it never waits, for a lock, for a
// disk or for anybody. What finds its ring full is dropped, and a RecordsDropped says how many.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "telemetry/ring.h"
#include "telemetry/trace_events.h"

namespace tinyvllm {

// Wants records up to its level. Called by one thread at a time: the tracer's own, or one of the
// steps' that has nothing to do for a moment and may not be kept.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual TraceLevel level() const = 0;
  virtual void take(const TraceRecord& record) = 0;
  virtual bool may_wait() const { return true; }  // in `take`, for a disk or a terminal
  virtual bool is_full() const { return false; }  // until the tracer's thread has paused
  virtual void pause() {}  // on the tracer's thread: nothing more is there right now
  virtual bool is_over() const { return false; }  // it can take no more, and is let go
};

class Tracer final : public SpareWork {
 public:
  // A decode step of a small model notes some 230 records in 3 ms at level op and 600 at level
  // kernel: the default holds three times what comes between two looks.
  explicit Tracer(size_t places = 1 << 15);  // of a thread's ring, a power of two
  ~Tracer() override;                        // those who still want records get all that are left
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  TraceLevel level() const { return level_.load(std::memory_order_relaxed); }
  bool on(TraceLevel level) const { return this->level() >= level; }

  SpanId new_span() { return next_span_.fetch_add(1, std::memory_order_relaxed); }
  static constexpr SpanId kRun = 1;  // the root of all spans

  template <class Event>
  void add(TraceLevel level, int64_t begin_ns, int64_t end_ns, SpanId span, SpanId parent,
           Event&& event) {
    own_ring().emplace(level, begin_ns, end_ns, span, parent, std::forward<Event>(event));
  }
  void add(TraceRecord&& record) { own_ring().emplace(std::move(record)); }
  // A moment, or something that began earlier and ends now.
  void note(const char* type, std::string data);

  // A copy that lives as long as the tracer.
  const char* intern(const std::string& text);

  void attach(std::shared_ptr<TraceSink> sink);
  // The sink has had everything that was noted before the call, and gets nothing more.
  void detach(const std::shared_ptr<TraceSink>& sink);

  void flush() { drain(); }  // everybody has had what was noted before
  // While it is held steps note nothing, as if nobody wanted it: to compare both in turns.
  void hold(bool held);
  // Records, if nobody has to wait for them.
  bool do_some(const std::function<bool()>& still_waiting) override;

  // The processor's time that handing out and writing took so far, beside the steps.
  int64_t writing_ns() const { return writing_ns_.load(std::memory_order_relaxed); }

 private:
  using Records = Ring<TraceRecord>;
  Records& own_ring();
  void run();
  void drain();
  void hand_out(const TraceRecord& record);
  void set_level();  // under sinks_mutex_

  const size_t places_;
  const uint64_t id_;  // no other tracer's of this process
  std::atomic<TraceLevel> level_{TraceLevel::kOff};
  std::atomic<SpanId> next_span_{kRun + 1};

  std::mutex rings_mutex_;
  std::vector<std::shared_ptr<Records>> rings_;
  std::set<std::string> interned_;

  std::mutex sinks_mutex_;  // held while records are handed out
  std::vector<std::shared_ptr<TraceSink>> sinks_;
  bool held_ = false;  // like the sinks, under their mutex

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool level_changed_ = false;
  std::thread thread_;  // from the first sink on
  std::atomic<int64_t> writing_ns_{0};
};

}  // namespace tinyvllm
