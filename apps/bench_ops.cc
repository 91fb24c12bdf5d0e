// tinyvllm bench ops: each op alone, at the shapes of real models, beside what the machine was
// measured to read and to multiply. Weights and caches are larger than the last-level cache, as in
// a step: copies are used in turn.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>

#include "apps/bench.h"
#include "base/json_writer.h"
#include "device/runtime.h"
#include "ops/attention.h"
#include "ops/cpu/limits.h"
#include "ops/linear.h"
#include "ops/norm.h"
#include "ops/rope.h"
#include "tests/ops/cases.h"
#include "tests/ops/harness.h"

namespace tinyvllm {
namespace {

using ops::Matrix;

struct OpsFlags {
  int threads = 0;
  std::string filter;
  double seconds = 0.3;
  bool json = false;
};

struct Measured {
  std::string name;
  OpCall call;
  std::vector<double> seconds;                     // per call, ascending
  double best() const { return seconds.front(); }  // the least disturbed sample
};

constexpr int kSamples = 5;
constexpr size_t kColdBytes = size_t{192} << 20;  // several times a last-level cache

class Bench {
 public:
  explicit Bench(const OpsFlags& flags, Runtime& runtime) : flags_(flags), runtime_(runtime) {}

  bool wanted(const std::string& name) const {
    return flags_.filter.empty() || name.find(flags_.filter) != std::string::npos;
  }

  // Times op(ctx, i) for i = 0, 1, …: `copies` of its data are there to be used in turn.
  void time(const std::string& name, size_t copies, std::span<const KvView> kv,
            const std::function<void(ExecContext&, size_t)>& op) {
    Arena measure;
    ExecContext dry{runtime_.device(), runtime_.pool(), measure, kv, true};
    op(dry, 0);
    std::vector<char> scratch(measure.peak());
    Arena arena(scratch.data(), scratch.size());
    ExecContext ctx{runtime_.device(), runtime_.pool(), arena, kv};
    Ledger ledger;
    ctx.ledger = &ledger;
    op(ctx, 0);
    ctx.ledger = nullptr;

    Measured result{name, ledger.calls().back(), {}};
    size_t next = 0;
    for (int sample = 0; sample < kSamples; ++sample) {
      const auto start = std::chrono::steady_clock::now();
      std::chrono::duration<double> elapsed{};
      int calls = 0;
      do {
        op(ctx, next++ % copies);
        calls += 1;
        elapsed = std::chrono::steady_clock::now() - start;
      } while (elapsed.count() < flags_.seconds / kSamples);
      result.seconds.push_back(elapsed.count() / calls);
    }
    std::sort(result.seconds.begin(), result.seconds.end());
    results_.push_back(std::move(result));
  }

  Runtime& runtime() { return runtime_; }
  const std::vector<Measured>& results() const { return results_; }

 private:
  const OpsFlags& flags_;
  Runtime& runtime_;
  std::vector<Measured> results_;
};

void bench_linear(Bench& bench) {
  for (const ops::LinearShape& shape : ops::kModelLinears) {
    for (const DType dtype : ops::kWeightTypes) {
      if (shape.in % dtype_info(dtype).block_elements != 0) continue;
      const std::string name =
          str_cat("linear ", dtype_name(dtype), " ", shape.out, "x", shape.in, " tokens=");
      std::vector<int64_t> wanted;
      for (const int64_t tokens : ops::kTokenCounts) {
        if (bench.wanted(str_cat(name, tokens))) wanted.push_back(tokens);
      }
      if (wanted.empty()) continue;
      const ops::Weights weights = ops::random_weights(dtype, shape.out, shape.in, 1);
      const TensorView view = weights.view();
      const size_t copies = 1 + kColdBytes / view.bytes();
      std::vector<std::vector<uint8_t>> sources(is_quantized(dtype) ? 0 : copies, weights.bytes);
      std::vector<ops::Linear> linears;
      for (size_t i = 0; i < copies; ++i) {
        TensorView copy = view;
        if (!sources.empty()) copy.data = sources[i].data();
        linears.push_back(ops::make_linear(bench.runtime().device(), bench.runtime().pool(),
                                           {std::span(&copy, 1), {}})
                              .value());
      }
      for (const int64_t tokens : wanted) {
        Matrix x = ops::random_matrix(tokens, shape.in, 2);
        Matrix y(tokens, shape.out);
        bench.time(str_cat(name, tokens), copies, {}, [&](ExecContext& ctx, size_t i) {
          ops::linear(ctx, linears[i], x.tensor(), y.tensor());
        });
      }
    }
  }
}

void bench_attention(Bench& bench) {
  for (const ops::AttentionShape& shape : ops::kModelAttentions) {
    const std::string name =
        str_cat("attention F16 ", shape.heads, "/", shape.kv_heads, "x", shape.head_dim,
                " cached=", shape.cached, " queries=", shape.queries);
    if (!bench.wanted(name)) continue;
    constexpr int kBlock = 16;
    constexpr int kLayers = 24;  // used in turn, so that K and V come from memory
    const int length = shape.cached + shape.queries;
    const ops::DealtBlocks tables({length}, kBlock, 1);
    const ops::TestBatch owner(tables, {{0, shape.cached, shape.queries}});
    KvView view;
    view.spec = KvSpec{kLayers, shape.kv_heads, shape.head_dim, shape.head_dim, DType::kF16, 0};
    view.block_size = kBlock;
    view.num_blocks = tables.num_blocks;
    std::vector<char> memory(ops::kv_block_bytes(view.spec, kBlock) *
                             static_cast<size_t>(view.num_blocks));
    view.data = memory.data();
    Matrix q = ops::random_matrix(shape.queries, shape.heads * shape.head_dim, 1);
    Matrix k = ops::random_matrix(shape.queries, shape.kv_heads * shape.head_dim, 2);
    Matrix y(shape.queries, shape.heads * shape.head_dim);
    bench.time(name, kLayers, std::span(&view, 1), [&](ExecContext& ctx, size_t i) {
      ops::attention(ctx, {shape.heads, 0.125f, 0}, owner.batch(), {0, static_cast<int>(i)},
                     q.tensor(), y.tensor());
    });
    const ops::Rope rope =
        ops::make_rope(ops::RopePairing::kAdjacent, shape.head_dim, shape.head_dim, 1e4);
    bench.time("rope " + name, kLayers, std::span(&view, 1), [&](ExecContext& ctx, size_t i) {
      ops::rope_kv_write(ctx, rope, owner.batch(), {0, static_cast<int>(i)}, q.tensor(), k.tensor(),
                         k.tensor());
    });
  }
}

void bench_norm(Bench& bench) {
  for (const int64_t width : {576, 2048}) {
    for (const int64_t tokens : ops::kTokenCounts) {
      const std::string name = str_cat("norm ", width, " tokens=", tokens);
      if (!bench.wanted(name)) continue;
      const Matrix w = ops::random_matrix(1, width, 1);
      const TensorView view{w.values.data(), DType::kF32, Shape{width}};
      const ops::Norm norm =
          ops::make_norm(bench.runtime().device(), ops::NormKind::kRms, 1e-5f, view, nullptr)
              .value();
      Matrix x = ops::random_matrix(tokens, width, 2);
      Matrix y(tokens, width);
      bench.time(name, 1, {},
                 [&](ExecContext& ctx, size_t) { ops::norm(ctx, norm, x.tensor(), y.tensor()); });
    }
  }
}

// The larger share of its two limits that a call reached: what bounds it.
double utilization(const Measured& m, const MachineLimits& limits) {
  const double peak = is_quantized(m.call.dtype) ? limits.int8_ops_per_s : limits.flops_per_s;
  return std::max(m.call.bytes / limits.read_bytes_per_s, m.call.flops / peak) / m.best();
}

void print_table(const Bench& bench, const MachineLimits& limits, int threads) {
  std::printf("%d threads: read %.1f GB/s, float %.0f GFLOP/s, int8 %.0f GOP/s\n\n", threads,
              limits.read_bytes_per_s / 1e9, limits.flops_per_s / 1e9, limits.int8_ops_per_s / 1e9);
  std::printf("%-52s %10s %8s %9s %7s\n", "op", "us", "GB/s", "GFLOP/s", "limit");
  for (const Measured& m : bench.results()) {
    std::printf("%-52s %10.1f %8.1f %9.1f %6.0f%%\n", m.name.c_str(), m.best() * 1e6,
                m.call.bytes / m.best() / 1e9, m.call.flops / m.best() / 1e9,
                100 * utilization(m, limits));
  }
}

void print_json(const Bench& bench, const MachineLimits& limits, int threads) {
  JsonWriter json;
  json.begin_object().key("machine").begin_object().field("threads", threads).end_object();
  json.key("limits").begin_object();
  json.field("read_gb_s", limits.read_bytes_per_s / 1e9);
  json.field("float_gflop_s", limits.flops_per_s / 1e9);
  json.field("int8_gop_s", limits.int8_ops_per_s / 1e9).end_object();
  json.key("results").begin_array();
  for (const Measured& m : bench.results()) {
    const double used = utilization(m, limits);
    json.begin_object().field("name", m.name).field("value", m.best() * 1e6).field("unit", "us");
    json.field("limit", m.best() * used * 1e6).field("utilization", used);
    json.field("bytes", m.call.bytes).field("flops", m.call.flops);
    json.key("samples").begin_array();
    for (const double s : m.seconds) json.value(s * 1e6);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.str().c_str());
}

Status run_bench(const OpsFlags& flags) {
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create({flags.threads}));
  TRY_ASSIGN(const MachineLimits limits,
             ops::cpu::measure_limits(runtime->device(), runtime->pool()));
  Bench bench(flags, *runtime);
  bench_norm(bench);
  bench_linear(bench);
  bench_attention(bench);
  if (flags.json) {
    print_json(bench, limits, runtime->pool().size());
  } else {
    print_table(bench, limits, runtime->pool().size());
  }
  return Status();
}

}  // namespace

void add_bench_ops(CLI::App& bench, Action& action) {
  auto flags = std::make_shared<OpsFlags>();
  CLI::App* command = bench.add_subcommand("ops", "Each op alone, at the shapes of real models");
  command->add_option("--threads", flags->threads, "Threads (default: physical cores)");
  command->add_option("--filter", flags->filter, "Only ops whose name contains this");
  command->add_option("--seconds", flags->seconds, "Time to spend on each");
  command->add_flag("--json", flags->json, "One JSON object");
  command->footer("Example:\n  tinyvllm bench ops --filter 'linear Q4_0'");
  command->callback([flags, &action] { action = [flags] { return run_bench(*flags); }; });
}

}  // namespace tinyvllm
