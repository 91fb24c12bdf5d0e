#include "telemetry/live_lines.h"

#include <cstdio>
#include <cstdlib>

#include "base/strings.h"

namespace tinyvllm {
namespace {

void print_op(const OpCompleted& op, double ns) {
  const OpCall& call = op.call;
  const std::string layer = call.layer < 0 ? "-" : str_cat("block_", call.layer);
  const std::string shape = str_cat("[", call.rows, ", ", call.in, "] → ", call.out);
  std::fprintf(stderr,
               "*** %s %-8s %-18s %-5s %-22s mem %8.3f MB tm %10.2fus %8.2f GFLOPS %7.2f GB/s\n",
               op.backend, layer.c_str(), call.op, dtype_name(call.dtype), shape.c_str(),
               call.bytes / 1e6, ns / 1e3, call.flops / ns, call.bytes / ns);
}

double us(Micros time) { return static_cast<double>(time.ns) / 1e3; }

void print_step(const StepPlanned& plan, const StepCompleted& step, double ns) {
  std::fprintf(stderr,
               "*** step %llu %s: %d sequences, %d prompt + %d decode tokens of %d, %d waiting, "
               "scheduled in %.2fus, tm %10.2fus (forward %.2f, sampling %.2f, delivery %.2f)\n",
               static_cast<unsigned long long>(step.step), phase_name(step.phase), plan.sequences,
               plan.prefill_tokens, plan.decode_tokens, plan.budget, plan.waiting,
               us(step.schedule), ns / 1e3, us(step.forward), us(step.sample), us(step.deliver));
}

}  // namespace

std::shared_ptr<LiveLines> LiveLines::from_environment() {
  const char* text = std::getenv("TINYVLLM_DEBUG");
  const int level = text == nullptr ? 0 : std::atoi(text);
  if (level <= 0) return nullptr;
  return std::make_shared<LiveLines>(level == 1 ? TraceLevel::kStep : TraceLevel::kOp);
}

void LiveLines::take(const TraceRecord& record) {
  const double ns = static_cast<double>(std::max<int64_t>(1, record.end_ns - record.begin_ns));
  if (const auto* op = std::get_if<OpCompleted>(&record.event)) {
    print_op(*op, ns);
  } else if (const auto* plan = std::get_if<StepPlanned>(&record.event)) {
    plan_ = *plan;
  } else if (const auto* step = std::get_if<StepCompleted>(&record.event)) {
    print_step(plan_, *step, ns);
  } else if (const auto* dropped = std::get_if<RecordsDropped>(&record.event)) {
    std::fprintf(stderr, "*** %llu records dropped\n",
                 static_cast<unsigned long long>(dropped->count));
  }
}

}  // namespace tinyvllm
