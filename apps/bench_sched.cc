// tinyvllm bench sched: what deciding costs, without a model: planning a step and committing it,
// for more and more sequences that decode.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "apps/bench.h"
#include "base/json_writer.h"
#include "report/samples.h"
#include "sched/scheduler.h"

namespace tinyvllm {
namespace {

struct SchedFlags {
  int steps = 2000;
  bool json = false;
};

struct Row {
  int sequences = 0;
  std::vector<double> schedule_us;  // one a step
  std::vector<double> commit_us;
};

Row measure(int sequences, int steps) {
  using Clock = std::chrono::steady_clock;
  const auto us = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  constexpr int kPrompt = 64;
  const int length = kPrompt + steps + 2;
  BlockManager blocks({{1 + sequences * (length / 16 + 1), 0}}, 16, true);
  Scheduler scheduler({512, sequences, length, {}}, blocks);
  for (int i = 0; i < sequences; ++i) {
    Request request;
    request.id = static_cast<SequenceId>(i + 1);
    request.prompt.assign(kPrompt, i);
    request.sampling.max_tokens = steps + 1;
    const Status added = scheduler.add(std::move(request));
    CHECK(added.ok()) << added.message();
  }
  Row row{sequences, {}, {}};
  StepPlan plan;
  while (static_cast<int>(row.schedule_us.size()) < steps && scheduler.has_work()) {
    const auto start = Clock::now();
    scheduler.schedule(plan);
    const auto planned = Clock::now();
    const bool all_decode = static_cast<int>(plan.tokens.size()) == sequences &&
                            static_cast<int>(plan.sequences.size()) == sequences;
    const int32_t token = 7;
    for (const SequencePlan& sequence : plan.sequences) {
      scheduler.commit(sequence.sequence, {&token, sequence.sample ? size_t{1} : size_t{0}});
    }
    const auto committed = Clock::now();
    if (!all_decode) continue;  // prompts on their way
    row.schedule_us.push_back(us(planned - start));
    row.commit_us.push_back(us(committed - planned));
  }
  return row;
}

void print_json(const std::vector<Row>& rows) {
  JsonWriter json;
  json.begin_object().key("machine").begin_object().end_object().key("results").begin_array();
  for (const Row& row : rows) {
    const auto result = [&](const char* what, const std::vector<double>& samples) {
      json.begin_object().field("name", str_cat(what, " ", row.sequences, " sequences"));
      json.field("value", median(samples)).field("unit", "us");
      json.key("limit").null().key("utilization").null().field("samples", samples).end_object();
    };
    result("schedule", row.schedule_us);
    result("commit", row.commit_us);
  }
  std::printf("%s\n", json.end_array().end_object().str().c_str());
}

Status run_bench(const SchedFlags& flags) {
  if (flags.steps < 1) return error("steps: expected at least 1, found ", flags.steps);
  std::vector<Row> rows;
  for (const int sequences : {1, 16, 64, 256}) rows.push_back(measure(sequences, flags.steps));
  if (flags.json) {
    print_json(rows);
    return Status();
  }
  std::printf("sequences   schedule a step   commit a step   (median of %d steps)\n", flags.steps);
  for (const Row& row : rows) {
    std::printf("%9d %14.1f us %12.1f us\n", row.sequences, median(row.schedule_us),
                median(row.commit_us));
  }
  return Status();
}

}  // namespace

void add_bench_sched(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand("sched", "What planning a step costs");
  const auto flags = std::make_shared<SchedFlags>();
  command->add_option("--steps", flags->steps, "steps to measure")->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer("Example:\n  tinyvllm bench sched");
  command->callback([flags, &action] { action = [flags] { return run_bench(*flags); }; });
}

}  // namespace tinyvllm
