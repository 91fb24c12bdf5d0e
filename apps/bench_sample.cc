// tinyvllm bench sample: what choosing one token costs, by what is asked for. Rows take turns, so
// that they come from where a step leaves them, the last-level cache. Beside each stands the time
// of one pass over the row (its maxima), which nothing that looks at all logits can undercut.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>

#include "apps/bench.h"
#include "base/json_writer.h"
#include "device/cpu/cpu_device.h"
#include "device/runtime.h"
#include "report/samples.h"
#include "sample/cpu/kernel_table.h"
#include "sample/cpu/scratch.h"
#include "sample/sampler.h"

namespace tinyvllm {
namespace {

struct SampleFlags {
  int vocabulary = 151'936;
  int samples = 400;
  bool json = false;
};

constexpr int kRows = 16;
constexpr double kPromise = 80;  // µs, for top_k 40 and top_p 0.95

struct Case {
  std::string name;
  SamplingParams params;
  size_t history = 0;
  bool flat = false;
};

struct Measured {
  std::string name;
  std::vector<double> us;  // ascending
  double median() const { return tinyvllm::median(us); }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, auto change, size_t history = 0, bool flat = false) {
    SamplingParams params;
    params.seed = 1;
    change(params);
    all.push_back({std::move(name), params, history, flat});
  };
  const auto none = [](SamplingParams&) {};
  const auto greedy = [](SamplingParams& p) { p.temperature = 0; };
  const auto nucleus = [](SamplingParams& p) { p.top_p = 0.95; };
  const auto typical = [](SamplingParams& p) { p.typical_p = 0.95; };
  const auto top_k = [](SamplingParams& p) { p.top_k = 40; };
  add("greedy", greedy);
  add("temperature 1", none);
  add("top_k 40, top_p 0.95", [&](SamplingParams& p) { top_k(p), nucleus(p); });
  add("top_k 40", top_k);
  add("top_k 1000", [](SamplingParams& p) { p.top_k = 1000; });
  add("top_p 0.95", nucleus);
  add("top_p 0.95, flat row", nucleus, 0, true);
  add("min_p 0.05", [](SamplingParams& p) { p.min_p = 0.05; });
  add("typical_p 0.95", typical);
  add("typical_p 0.95, flat row", typical, 0, true);
  add("min_p 0.05, xtc 0.5", [](SamplingParams& p) { p.min_p = 0.05, p.xtc_probability = 0.5; });
  add("greedy, logprobs 20", [](SamplingParams& p) { p.temperature = 0, p.logprobs = 20; });
  add("greedy, 10 allowed ids", [](SamplingParams& p) {
    p.temperature = 0;
    p.allowed_token_ids = {1, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000};
  });
  for (const size_t history : {1'000, 10'000, 100'000}) {
    const std::string of = str_cat(" of ", group_digits(static_cast<int64_t>(history)));
    add(
        "greedy, repetition 1.1" + of,
        [](SamplingParams& p) { p.temperature = 0, p.repetition_penalty = 1.1; }, history);
    add(
        "greedy, frequency 0.5" + of,
        [](SamplingParams& p) { p.temperature = 0, p.frequency_penalty = 0.5; }, history);
    add(
        "greedy, dry 0.8" + of,
        [](SamplingParams& p) {
          p.temperature = 0, p.dry_multiplier = 0.8, p.dry_penalty_last_n = -1;
        },
        history);
  }
  return all;
}

// As a chat model's: a head that falls off like words do (its nucleus some hundred tokens), over a
// tail of 2.5 standard deviation. Flat: all tail, a nucleus of most of the vocabulary.
std::vector<float> make_rows(int vocabulary, bool flat) {
  std::mt19937 random(1);
  std::normal_distribution<float> tail(0, flat ? 1.0f : 2.5f);
  std::vector<float> rows(static_cast<size_t>(vocabulary) * kRows);
  for (float& logit : rows) logit = tail(random);
  for (size_t row = 0; row < kRows && !flat; ++row) {
    for (int rank = 1; rank <= 2000; ++rank) {
      rows[row * static_cast<size_t>(vocabulary) + random() % static_cast<size_t>(vocabulary)] =
          17 - 1.2f * std::log(static_cast<float>(rank));
    }
  }
  return rows;
}

// Frequent tokens and rare ones, as in text: each rank as frequent as one over it.
std::vector<int32_t> make_history(int vocabulary, size_t length) {
  std::mt19937 random(2);
  std::vector<int32_t> tokens(length);
  for (int32_t& token : tokens) {
    const double u = static_cast<double>(random()) * 0x1p-32;
    token = static_cast<int32_t>(std::pow(vocabulary / 4, u));
  }
  return tokens;
}

template <class Work>
std::vector<double> time(int samples, Work work) {
  std::vector<double> us;
  for (int i = 0; i < samples; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work(i % kRows);
    const auto end = std::chrono::steady_clock::now();
    us.push_back(std::chrono::duration<double, std::micro>(end - start).count());
  }
  std::sort(us.begin(), us.end());
  return us;
}

std::vector<Measured> measure(const SampleFlags& flags, Runtime& runtime) {
  std::vector<float> peaked = make_rows(flags.vocabulary, false);
  std::vector<float> flat = make_rows(flags.vocabulary, true);
  const std::vector<int32_t> history = make_history(flags.vocabulary, 100'000);

  const auto& kernels = cpu_sampler::kernels(static_cast<CpuDevice&>(runtime.device()).isa());
  std::vector<float> maxima(cpu_sampler::Scratch(nullptr, flags.vocabulary).blocks);
  std::vector<Measured> results;
  results.push_back({"one pass", time(flags.samples, [&](int row) {
                       kernels.block_maxima(peaked.data() + ptrdiff_t{row} * flags.vocabulary,
                                            flags.vocabulary, maxima.data());
                     })});

  std::vector<SampleOutput> out(1);
  for (const Case& c : cases()) {
    const Tensor logits((c.flat ? flat : peaked).data(), DType::kF32, kRows, flags.vocabulary);
    SampleRow row;
    row.params = &c.params;
    row.history = std::span(history).first(c.history);
    row.position = static_cast<uint32_t>(c.history);
    Arena measuring;
    ExecContext dry{runtime.device(), runtime.pool(), measuring, {}, /*dry_run=*/true};
    sample(dry, logits, {&row, 1}, out);
    std::vector<char> memory(measuring.peak());
    Arena arena(memory.data(), memory.size());
    ExecContext ctx{runtime.device(), runtime.pool(), arena, {}};
    results.push_back({c.name, time(flags.samples, [&](int index) {
                         row.logit_row = index;
                         row.answer += 1;
                         sample(ctx, logits, {&row, 1}, out);
                       })});
  }
  return results;
}

void print_table(const SampleFlags& flags, Device& device, const std::vector<Measured>& results) {
  std::printf("%s tokens, one thread, %s\n\n", group_digits(flags.vocabulary).c_str(),
              device.name().c_str());
  std::printf("%-40s %10s %10s %10s\n", "one row", "best us", "median us", "passes");
  const double pass = results.front().us.front();
  for (const Measured& m : results) {
    std::printf("%-40s %10.1f %10.1f %10.1f\n", m.name.c_str(), m.us.front(), m.median(),
                m.us.front() / pass);
  }
  std::printf("\ntop_k 40, top_p 0.95 promises %.0f us\n", kPromise);
}

void print_json(const SampleFlags& flags, Device& device, const std::vector<Measured>& results) {
  JsonWriter json;
  json.begin_object().key("machine").begin_object();
  json.field("device", device.name()).field("threads", 1).end_object();
  json.field("vocabulary", flags.vocabulary).field("promise_us", kPromise);
  json.key("results").begin_array();
  const double pass = results.front().us.front();
  for (const Measured& m : results) {
    json.begin_object().field("name", m.name).field("value", m.median()).field("unit", "us");
    json.field("limit", pass).field("utilization", pass / m.us.front()).field("samples", m.us);
    json.end_object();
  }
  std::printf("%s\n", json.end_array().end_object().str().c_str());
}

Status run_bench(const SampleFlags& flags) {
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create({/*threads=*/1}));
  const std::vector<Measured> results = measure(flags, *runtime);
  if (flags.json) {
    print_json(flags, runtime->device(), results);
  } else {
    print_table(flags, runtime->device(), results);
  }
  return Status();
}

}  // namespace

void add_bench_sample(CLI::App& bench, Action& action) {
  const auto flags = std::make_shared<SampleFlags>();
  CLI::App* command = bench.add_subcommand("sample", "Choosing a token from a row of logits");
  command->add_option("--vocab-size", flags->vocabulary, "tokens to choose from")
      ->check(CLI::Range(10'000, 1'000'000))
      ->capture_default_str();
  command->add_option("--samples", flags->samples, "times each case is measured")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer("Example:\n  tinyvllm bench sample --vocab-size 49152");
  command->callback([flags, &action] { action = [flags] { return run_bench(*flags); }; });
}

}  // namespace tinyvllm
