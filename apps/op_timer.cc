#include "apps/op_timer.h"

#include <algorithm>

#include "apps/command.h"
#include "base/stopwatch.h"

namespace tinyvllm {
namespace {

constexpr int kSamples = 5;
constexpr int kMostCalls = 1 << 20;  // of a sample; a clock that stands still ends it, too
constexpr size_t kColdBytes = size_t{96} << 20;  // where no cache is known
constexpr size_t kTimesCache = 3;

}  // namespace

double TimedOp::bytes() const {
  double sum = 0;
  for (const OpCall& call : calls) sum += call.bytes;
  return sum;
}

double TimedOp::flops() const {
  double sum = 0;
  for (const OpCall& call : calls) sum += call.flops;
  return sum;
}

OpTimer::OpTimer(Runtime& runtime, std::string filter, double seconds)
    : runtime_(runtime),
      filter_(std::move(filter)),
      seconds_(seconds),
      cold_bytes_(std::max(kColdBytes, kTimesCache * runtime.device().spec().last_cache_bytes)) {}

bool OpTimer::wanted(const std::string& name) const {
  return !interrupted() && (filter_.empty() || name.find(filter_) != std::string::npos);
}

// Seconds of one call, on average over a while.
double OpTimer::sample(ExecContext& ctx, size_t copies, const Op& op) {
  double took = 0;
  int calls = 0;
  for (int burst = 1; took < seconds_ / kSamples && calls < kMostCalls;) {
    const Stopwatch host;
    const int64_t begin = device().mark();
    for (int i = 0; i < burst; ++i) op(ctx, turn_++ % copies);
    const int64_t end = device().mark();
    calls += burst;
    if (begin < 0) {
      took += host.seconds();
      continue;
    }
    took += static_cast<double>(device().ns_between(begin, end)) / 1e9;
    // A device that works by itself stands still for microseconds before every burst: the longer
    // they get, the less of that is in the average.
    burst *= 2;
  }
  return took / calls;
}

Status OpTimer::time(const std::string& name, size_t copies, std::span<const KvView> kv,
                     const Op& op) {
  if (!wanted(name)) return Status();
  Arena measure;
  ExecContext dry{device(), pool(), measure, kv, true};
  op(dry, 0);
  TRY_ASSIGN(const Buffer scratch, device().allocate(measure.peak(), "an op's scratch"));
  Arena arena(scratch.data(), scratch.bytes());
  ExecContext ctx{device(), pool(), arena, kv};
  Ledger ledger;
  ctx.ledger = &ledger;
  op(ctx, 0);
  ctx.ledger = nullptr;

  TimedOp result{name, ledger.calls(), {}};
  turn_ = 0;
  const Stopwatch all;
  // A slow op gets three samples, whatever they cost.
  while (result.seconds.size() < 3 ||
         (result.seconds.size() < kSamples && all.seconds() < seconds_)) {
    result.seconds.push_back(sample(ctx, copies, op));
  }
  if (hook_) hook_(result);
  results_.push_back(std::move(result));
  return Status();
}

}  // namespace tinyvllm
