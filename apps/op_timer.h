// Times one op alone: dry once to find its scratch, once with a ledger to learn what it must move
// and do, then over and over for a while.
#pragma once

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
  OpTimer(Runtime& runtime, std::string filter, double seconds)
      : runtime_(runtime), filter_(std::move(filter)), seconds_(seconds) {}

  bool wanted(const std::string& name) const;

  // op(ctx, i) for i = 0, 1, … < copies: its data are there so often, to be used in turn, because a
  // step finds them in memory and not in a cache.
  using Op = std::function<void(ExecContext&, size_t)>;
  void time(const std::string& name, size_t copies, std::span<const KvView> kv, const Op& op);

  Runtime& runtime() { return runtime_; }
  const std::vector<TimedOp>& results() const { return results_; }
  void on_result(std::function<void(const TimedOp&)> hook) { hook_ = std::move(hook); }

 private:
  Runtime& runtime_;
  const std::string filter_;
  const double seconds_;
  std::vector<TimedOp> results_;
  std::function<void(const TimedOp&)> hook_;
};

// Every op at the shapes of real models, at so many tokens.
void time_linears(OpTimer& timer, const std::vector<int>& tokens);
void time_mixtures(OpTimer& timer, const std::vector<int>& tokens);
void time_attentions(OpTimer& timer);
void time_rows(OpTimer& timer, const std::vector<int>& tokens);  // norms, embeddings, softmax

}  // namespace tinyvllm
