// Real traces, read back: spans nest, the time of children never adds up to more than their
// parent's, every op call is there once with its shape, and every name that an analysis looks for
// is filled.
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <simdjson.h>
#include <thread>
#include <unistd.h>

#include "base/strings.h"
#include "engine/async_engine.h"
#include "telemetry/trace_file.h"
#include "tests/engine/smollm2.h"
#include "tests/engine/tiny_engine.h"

namespace tinyvllm {
namespace {

struct Line {
  double end = 0;
  double duration = 0;
  uint64_t span = 0;
  uint64_t parent = 0;
  std::string type;
  std::string name;  // of the op or the internal kernel
  uint64_t step = 0;
  simdjson::dom::element data;

  // Sums of moments here and there: not a stretch of time of their own.
  bool is_sum() const {
    return name.ends_with("/cb_wait") || name.starts_with("forward_cpu_block_");
  }
};

class Trace : public testing::Test {
 protected:
  Trace() : path_(str_cat(testing::TempDir(), "tinyvllm_trace_test_", getpid(), ".jsonl")) {}
  ~Trace() override { std::filesystem::remove(path_); }

  std::unique_ptr<TraceLog> open(TraceLevel level) {
    return TraceLog::open(runtime_->tracer(), {path_, level, 0, {}}, 2).value();
  }
  static void ask(LLMEngine& engine, int requests, int max_tokens) {
    for (int i = 0; i < requests; ++i) {
      SamplingParams sampling;
      sampling.temperature = 0;
      sampling.ignore_eos = true;
      sampling.max_tokens = max_tokens;
      ASSERT_TRUE(engine.add_request(tiny_prompt(i % 2, 20 + i), sampling).ok());
    }
    engine.run();
  }

  void read() {
    std::ifstream file(path_);
    for (std::string text; std::getline(file, text);) {
      parsers_.push_back(std::make_unique<simdjson::dom::parser>());
      const simdjson::dom::element record = parsers_.back()->parse(text).value();
      Line line;
      line.end = record["timestamp"].get_double().value();
      if (!record["span_id"].is_null()) line.span = record["span_id"].get_uint64().value();
      if (!record["parent_span_id"].is_null()) {
        line.parent = record["parent_span_id"].get_uint64().value();
      }
      line.type = record["event"]["type"].get_string().value();
      line.data = record["event"]["data"];
      if (double d = 0; line.data["duration_us"].get(d) == simdjson::SUCCESS) line.duration = d;
      std::string_view name;
      if (line.data["op_name"].get(name) == simdjson::SUCCESS) line.name = name;
      if (line.data["internal_kernel_name"].get(name) == simdjson::SUCCESS) line.name = name;
      uint64_t step = 0;
      if (line.data["step"].get(step) == simdjson::SUCCESS ||
          line.data["data"]["step"].get(step) == simdjson::SUCCESS) {
        line.step = step;
      }
      lines_.push_back(std::move(line));
    }
  }

  // Children lie within their parents, and those that follow one another add up to no more.
  void check_nesting() {
    std::map<uint64_t, const Line*> spans;
    for (const Line& line : lines_) {
      if (line.duration > 0 && !line.is_sum()) spans.emplace(line.span, &line);
    }
    std::map<uint64_t, double> children;
    constexpr double kRounding = 0.0015;  // a nanosecond, in µs, written with three decimals
    for (const auto& [span, line] : spans) {
      if (line->parent <= Tracer::kRun) continue;  // requests of a run overlap
      const auto parent = spans.find(line->parent);
      ASSERT_NE(parent, spans.end()) << line->name << " has no parent";
      const Line& outer = *parent->second;
      EXPECT_LE(line->end, outer.end + kRounding) << line->name << " in " << outer.name;
      EXPECT_GE(line->end - line->duration, outer.end - outer.duration - kRounding)
          << line->name << " in " << outer.name;
      children[line->parent] += line->duration - kRounding;
    }
    for (const auto& [span, sum] : children) {
      EXPECT_LE(sum, spans.at(span)->duration + kRounding) << spans.at(span)->name;
    }
    EXPECT_GT(children.size(), 10u);
  }

  // What an op's level sums up to is within what the level above took.
  void check_sums() {
    std::map<uint64_t, double> ops, layers, forwards, waits, steps;
    for (const Line& line : lines_) {
      if (line.type == "GpuOpCompleted" && line.name.ends_with("/cb_wait")) {
        waits[line.step] += line.duration;
      } else if (line.type == "GpuOpCompleted" && line.name.find("/block_") != std::string::npos) {
        ops[line.step] += line.duration;
      } else if (line.name.starts_with("block_") && line.name.ends_with("_total")) {
        layers[line.step] += line.duration;
      } else if (line.name == "forward_step_total") {
        forwards[line.step] += line.duration;
      } else if (line.name == "iteration_total") {
        steps[line.step] += line.duration;
      }
    }
    ASSERT_FALSE(steps.empty());
    for (const auto& [step, time] : steps) {
      EXPECT_LE(ops[step], layers[step]) << "step " << step;
      EXPECT_LE(layers[step], forwards[step]) << "step " << step;
      EXPECT_LE(forwards[step], time) << "step " << step;
      EXPECT_LE(waits[step], forwards[step]) << "step " << step;
      EXPECT_GT(ops[step], 0) << "step " << step;
    }
  }

  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const Line& line : lines_) names.insert(line.name.empty() ? line.type : line.name);
    for (const Line& line : lines_) names.insert(line.type);
    return names;
  }

  // Every op of every step once, products with their three sizes.
  void check_ops(int layers, int per_layer) {
    std::map<uint64_t, int> count;
    std::set<uint64_t> spans;
    for (const Line& line : lines_) {
      if (line.type != "GpuOpCompleted" || line.name.find("/cb_") != std::string::npos) continue;
      EXPECT_TRUE(spans.insert(line.span).second) << "two ops of span " << line.span;
      const simdjson::dom::element op = line.data["data"];
      if (op["layer"].get_int64().value() >= 0) count[line.step] += 1;
      if (op["op"].get_string().value().find("linear") == std::string_view::npos) continue;
      const int64_t m = op["m"].get_int64().value();
      const int64_t n = op["n"].get_int64().value();
      const int64_t k = op["k"].get_int64().value();
      EXPECT_EQ(op["flops"].get_double().value(), 2.0 * static_cast<double>(m * n * k));
      EXPECT_GT(op["bytes"].get_double().value(), 0);
    }
    ASSERT_FALSE(count.empty());
    for (const auto& [step, ops] : count) EXPECT_EQ(ops, layers * per_layer) << "step " << step;
  }

  const std::string path_;
  std::unique_ptr<Runtime> runtime_ = Runtime::create({2}).value();
  std::vector<std::unique_ptr<simdjson::dom::parser>> parsers_;
  std::vector<Line> lines_;
};

constexpr const char* kNames[] = {"iteration_total",
                                  "schedule",
                                  "pool_reset",
                                  "tensor_staging_prepare",
                                  "forward_step_total",
                                  "embedding",
                                  "block_0_total",
                                  "forward_cpu_block_0",
                                  "next_token_ready_latency",
                                  "next_token_wait",
                                  "token_push",
                                  "eos_check",
                                  "token_decode",
                                  "cache_logging",
                                  "tiles",
                                  "norm_activations",
                                  "barrier_sync",
                                  "Prompt Processing/cb_gpu",
                                  "Generation Loop/cb_gpu",
                                  "Generation Loop/cb_wait",
                                  "Generation Loop/embedding",
                                  "Generation Loop/block_0/attention",
                                  "Prompt Processing/generation_step_output",
                                  "GpuKernelDispatched",
                                  "KernelBackendSelected",
                                  "ResourceCacheAccess",
                                  "ResourceCacheSummary",
                                  "GgufFileMmap",
                                  "ModelWeights",
                                  "ForwardStep",
                                  "HostMemory",
                                  "TensorPreparationStats",
                                  "RequestAdded",
                                  "RequestFinished",
                                  "StepPlan",
                                  "StepCompleted",
                                  "KvBlocks",
                                  "PrefixCache",
                                  "TraceCalibration",
                                  "TraceEnded"};

TEST_F(Trace, OfATinyModelNestsAndAddsUp) {
  {
    const auto log = open(TraceLevel::kKernel);
    EngineOptions options = tiny_options();
    options.dtype = "Q8_0";
    ask(*load_tiny(*runtime_, options), 5, 6);
  }
  read();
  check_nesting();
  check_sums();
  const std::set<std::string> found = names();
  for (const char* name : kNames) EXPECT_TRUE(found.contains(name)) << name;
}

TEST_F(Trace, OfSmolLM2NestsAddsUpAndHasEveryOpOnce) {
  {
    const auto log = open(TraceLevel::kKernel);
    EngineOptions options;
    options.max_model_len = 128;
    auto engine = LLMEngine::load(*runtime_, smollm2_path(), options);
    ASSERT_TRUE(engine.ok()) << engine.message();
    ask(*engine.value(), 2, 3);
  }
  read();
  check_nesting();
  check_sums();
  check_ops(/*layers=*/30, /*per_layer=*/6);
  EXPECT_TRUE(names().contains("quantize_activations"));
}

TEST_F(Trace, AtStepLevelHasNoOps) {
  {
    const auto log = open(TraceLevel::kStep);
    ask(*load_tiny(*runtime_), 2, 3);
  }
  read();
  const std::set<std::string> found = names();
  EXPECT_TRUE(found.contains("StepCompleted"));
  EXPECT_TRUE(found.contains("RequestFinished"));
  EXPECT_FALSE(found.contains("GpuOpCompleted"));
  EXPECT_FALSE(found.contains("block_0_total"));
}

TEST_F(Trace, ARunningEngineCanBeProfiled) {
  AsyncEngine engine(load_tiny(*runtime_));
  SamplingParams sampling;
  sampling.ignore_eos = true;
  sampling.max_tokens = 400;
  std::atomic<bool> stop = false;
  std::thread client([&] {
    while (!stop) {
      std::promise<void> done;
      const auto callback = [&](RequestOutput&& news) {
        if (news.finish != FinishReason::kNone) done.set_value();
      };
      ASSERT_TRUE(engine.submit(tiny_prompt(1, 8), sampling, {}, callback).ok());
      done.get_future().wait();
    }
  });
  const RooflineTable table = engine.profile(std::chrono::milliseconds(300));
  stop = true;
  client.join();
  EXPECT_EQ(runtime_->tracer().level(), TraceLevel::kOff);
  ASSERT_FALSE(table.rows.empty());
  EXPECT_LE(table.op_seconds, table.wall_seconds);
  EXPECT_GT(table.op_seconds, 0.2 * table.wall_seconds);
  EXPECT_LT(table.wall_seconds, 2.0);
}

}  // namespace
}  // namespace tinyvllm
