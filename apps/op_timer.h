// Times one op alone on the device of a runtime: dry once to find its scratch, once with a ledger
// to learn what it must move and do, then over and over for a while, by the device's own clock
// where it has one.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/exec_context.h"
#include "device/runtime.h"

namespace tinyvllm {

struct TimedOp {
  std::string name;
  std::vector<OpCall> calls;    // one, or those it is made of
  std::vector<double> seconds;  // of one call, on average over a sample

  double bytes() const;
  double flops() const;
};

class OpTimer {
 public:
  // Ops whose name contains `filter`, `seconds` each.
  OpTimer(Runtime& runtime, std::string filter, double seconds);

  bool wanted(const std::string& name) const;

  // op(ctx, i) for i = 0, 1, … < copies: its data are there so often, to be used in turn, because a
  // step finds them in memory and not in a cache.
  using Op = std::function<void(ExecContext&, size_t)>;
  Status time(const std::string& name, size_t copies, std::span<const KvView> kv, const Op& op);
  size_t copies_of(size_t bytes) const { return 1 + cold_bytes_ / std::max<size_t>(bytes, 1); }

  Device& device() { return runtime_.device(); }
  ThreadPool& pool() { return runtime_.pool(); }
  const std::vector<TimedOp>& results() const { return results_; }
  void on_result(std::function<void(const TimedOp&)> hook) { hook_ = std::move(hook); }

 private:
  double sample(ExecContext& ctx, size_t copies, const Op& op);

  Runtime& runtime_;
  const std::string filter_;
  const double seconds_;
  const size_t cold_bytes_;  // read one after the other, none is in a cache when its turn comes
  size_t turn_ = 0;          // of the copies
  std::vector<TimedOp> results_;
  std::function<void(const TimedOp&)> hook_;
};

}  // namespace tinyvllm
