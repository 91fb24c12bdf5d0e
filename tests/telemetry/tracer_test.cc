// The tracer under many threads, and its file under everything that can happen to one: no record is
// lost without being counted, and whatever becomes of the file, the run goes on.
#include "telemetry/tracer.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>
#include <simdjson.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/strings.h"
#include "telemetry/trace_context.h"
#include "telemetry/trace_file.h"

namespace tinyvllm {
namespace {

TraceRecord step_record(uint64_t step) {
  return {TraceLevel::kStep, 0, 0, Tracer::kRun, 0, KvBlocks{.step = step}};
}

// Remembers which steps it was told of, and how many were dropped.
class Memory final : public TraceSink {
 public:
  explicit Memory(TraceLevel level) : level_(level) {}
  TraceLevel level() const override { return level_; }
  void take(const TraceRecord& record) override {
    if (const auto* kv = std::get_if<KvBlocks>(&record.event)) seen.push_back(kv->step);
    if (const auto* lost = std::get_if<RecordsDropped>(&record.event)) dropped += lost->count;
  }
  std::vector<uint64_t> seen;
  uint64_t dropped = 0;

 private:
  const TraceLevel level_;
};

TEST(Tracer, EveryRecordOfEveryThreadArrivesOnceOrIsCounted) {
  constexpr uint64_t kThreads = 6;
  constexpr uint64_t kEach = 40'000;  // more than a ring holds
  Tracer tracer;
  const auto memory = std::make_shared<Memory>(TraceLevel::kStep);
  tracer.attach(memory);
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEach; ++i) tracer.add(step_record(thread * kEach + i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  tracer.detach(memory);
  EXPECT_EQ(memory->seen.size() + memory->dropped, kThreads * kEach);
  std::map<uint64_t, uint64_t> last;  // of each thread: in its order, and none twice
  for (const uint64_t step : memory->seen) {
    const auto [entry, is_new] = last.try_emplace(step / kEach, step);
    if (is_new) continue;
    EXPECT_LT(entry->second, step);
    entry->second = step;
  }
}

// Takes records at once, or may have to wait, and remembers which of them this thread brought.
class Patient final : public TraceSink {
 public:
  explicit Patient(bool may_wait) : may_wait_(may_wait) {}
  TraceLevel level() const override { return TraceLevel::kStep; }
  bool may_wait() const override { return may_wait_; }
  void take(const TraceRecord& record) override {
    seen.push_back(std::get<KvBlocks>(record.event).step);
    own += std::this_thread::get_id() == test_ ? 1 : 0;
  }
  std::vector<uint64_t> seen;
  std::atomic<int> own = 0;  // looked at while the tracer's thread may be taking some

 private:
  const bool may_wait_;
  const std::thread::id test_ = std::this_thread::get_id();
};

TEST(Tracer, AThreadWithTimeToSpareHandsOutWhatNobodyWaitsFor) {
  for (const bool may_wait : {false, true}) {
    Tracer tracer;
    const auto sink = std::make_shared<Patient>(may_wait);
    tracer.attach(sink);
    constexpr uint64_t kCount = 1000;
    for (uint64_t i = 0; i < kCount; ++i) {
      tracer.add(step_record(i));
      if (i % 10 == 9) tracer.do_some([] { return true; });
    }
    const int own = sink->own;
    tracer.detach(sink);
    EXPECT_EQ(own > 0, !may_wait);
    std::vector<uint64_t> all(kCount);
    std::iota(all.begin(), all.end(), uint64_t{0});
    EXPECT_EQ(sink->seen, all);
  }
}

TEST(Tracer, AThreadIsNotKeptWhenItsTimeIsOver) {
  Tracer tracer;
  const auto sink = std::make_shared<Patient>(/*may_wait=*/false);
  tracer.attach(sink);
  for (uint64_t i = 0; i < 100; ++i) tracer.add(step_record(i));
  int asked = 0;
  tracer.do_some([&] { return ++asked <= 3; });
  EXPECT_LE(sink->own, 3);
  tracer.detach(sink);
  EXPECT_EQ(sink->seen.size(), 100U);
}

TEST(Tracer, NotesNothingWhileHeld) {
  Tracer tracer;
  const auto sink = std::make_shared<Patient>(/*may_wait=*/false);
  tracer.attach(sink);
  tracer.hold(true);
  EXPECT_FALSE(tracer.on(TraceLevel::kStep));
  tracer.attach(std::make_shared<Patient>(/*may_wait=*/true));
  EXPECT_FALSE(tracer.on(TraceLevel::kStep));
  tracer.hold(false);
  EXPECT_TRUE(tracer.on(TraceLevel::kStep));
}

TEST(Tracer, ListensAsCloselyAsTheClosestListener) {
  Tracer tracer;
  EXPECT_EQ(tracer.level(), TraceLevel::kOff);
  const auto steps = std::make_shared<Memory>(TraceLevel::kStep);
  const auto ops = std::make_shared<Memory>(TraceLevel::kOp);
  tracer.attach(steps);
  tracer.attach(ops);
  EXPECT_EQ(tracer.level(), TraceLevel::kOp);
  TraceRecord of_op = step_record(7);
  of_op.level = TraceLevel::kOp;
  tracer.add(std::move(of_op));
  tracer.detach(ops);
  EXPECT_EQ(tracer.level(), TraceLevel::kStep);
  tracer.add(step_record(8));
  tracer.detach(steps);
  EXPECT_EQ(tracer.level(), TraceLevel::kOff);
  EXPECT_EQ(ops->seen, std::vector<uint64_t>({7}));
  EXPECT_EQ(steps->seen, std::vector<uint64_t>({8}));
}

class TraceFiles : public testing::Test {
 protected:
  TraceFiles()
      : folder_(std::filesystem::temp_directory_path() /
                ("tinyvllm_trace_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TraceFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  static TraceFileOptions options(const std::string& path) {
    return {path, TraceLevel::kOp, 0, {{"TraceStarted", R"({"format":1})"}}};
  }
  static std::vector<std::string> lines_of(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  // Traces until the file gives up, and says how many warnings that took.
  static size_t warnings_until_off(Tracer& tracer, const std::string& path) {
    testing::internal::CaptureStderr();
    {
      const auto log = TraceLog::open(tracer, options(path), 2).value();
      for (int i = 0; i < 10'000'000 && tracer.on(TraceLevel::kStep); ++i) {
        tracer.add(step_record(static_cast<uint64_t>(i)));
        if (i % 1000 == 0) usleep(1000);
      }
      EXPECT_EQ(tracer.level(), TraceLevel::kOff) << "tracing should have ended by itself";
    }
    const std::string text = testing::internal::GetCapturedStderr();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  const std::filesystem::path folder_;
};

TEST_F(TraceFiles, AnOpIsThisLine) {
  TraceFormat format(TraceLevel::kOp, /*start_ns=*/1'000'000);
  OpCompleted op{.call = {}, .step = 4, .backend = "cpu-avx2", .threads = 2};
  op.call = {.op = "norm_linear", .kernel = "linear", .reason = "why", .dtype = DType::kQ4_1};
  op.call.matmul = true;
  op.call.rows = 1;
  op.call.out = 960;
  op.call.in = 576;
  op.call.bytes = 345600.5;
  op.call.flops = 1105920;
  op.call.phase = Phase::kDecode;
  op.call.layer = 12;
  TextBuffer out;
  format.append({TraceLevel::kOp, 1'000'500, 1'031'520, 9, 8, op}, out);
  format.append({TraceLevel::kOp, 1'000'500, 1'031'520, 9, 8, op}, out);  // the choice is known now
  op.step = 5;
  op.call.rows = 3;  // another shape, which the line must not have kept
  format.append({TraceLevel::kOp, 1'000'500, 1'031'520, 9, 8, op}, out);
  const auto line = [](int step, int rows) {
    const std::string n = std::to_string(rows);
    return R"({"timestamp":31.520,"span_id":9,"parent_span_id":8,"span_name":"norm_linear",)"
           R"("event":{"type":"GpuOpCompleted","data":{"op_name":)"
           R"("Generation Loop/block_12/norm_linear","backend":"cpu-avx2","duration_us":31.020,)"
           R"("data":{"step":)" +
           std::to_string(step) +
           R"(,"op":"norm_linear",)"
           R"("kernel":"linear_q4_1_avx2","dtype":"Q4_1","phase":"decode","layer":12,"batch":1,)"
           R"("m":)" +
           n + R"(,"n":960,"k":576,"tA":0,"tB":1,"rows":)" + n +
           R"(,"bytes":345600.500,"flops":1105920,"threads":2}}}})"
           "\n";
  };
  const std::string choice =
      R"({"timestamp":31.520,"span_id":9,"parent_span_id":8,"span_name":"norm_linear",)"
      R"("event":{"type":"KernelBackendSelected","data":{"op_name":"norm_linear",)"
      R"("backend":"cpu-avx2","reason":"why","kernel":"linear_q4_1_avx2","dtype":"Q4_1"}}})";
  EXPECT_EQ(out.view(), choice + "\n" + line(4, 1) + line(4, 1) + line(5, 3));
}

std::string last_line(TraceFormat& format, const TraceRecord& record) {
  TextBuffer out;
  format.append(record, out);
  const std::string_view text = out.view();
  return std::string(text.substr(text.rfind('\n', text.size() - 2) + 1));
}

// Most of a line is kept from one record to the next like it: others that come between, in an order
// that never repeats, must not get any of it.
TEST_F(TraceFiles, ALineIsThatOfItsRecordWhateverCameBefore) {
  TraceFormat kept(TraceLevel::kOp, /*start_ns=*/0);
  std::mt19937 random(7);
  const auto pick = [&](int count) { return static_cast<int>(random() % count); };
  for (int i = 0; i < 2000; ++i) {
    TraceRecord record{TraceLevel::kOp, 1000, 2500, 9, 8, {}};
    if (pick(2) == 0) {
      constexpr const char* kNames[] = {"block_{}_total", "block_{}_rest", "embedding"};
      record.event = PartCompleted{pick(2) == 0 ? "generation_loop" : "sampling", kNames[pick(3)],
                                   pick(3) - 1, static_cast<uint64_t>(pick(3))};
    } else {
      OpCompleted op{.call = {}, .step = 4, .backend = "cpu-avx2", .threads = 2};
      op.call.op = pick(2) == 0 ? "linear_add" : "attention";
      op.call.kernel = pick(2) == 0 ? "linear" : "";
      op.call.dtype = pick(2) == 0 ? DType::kQ4_1 : DType::kF16;
      op.call.matmul = pick(2) == 0;
      op.call.phase = pick(2) == 0 ? Phase::kDecode : Phase::kPrefill;
      op.call.layer = pick(3) - 1;
      op.call.rows = 1 + pick(2);
      op.call.out = 64 * (1 + pick(2));
      op.call.in = 32 * (1 + pick(2));
      record.event = op;
    }
    TraceFormat fresh(TraceLevel::kOp, /*start_ns=*/0);
    ASSERT_EQ(last_line(kept, record), last_line(fresh, record)) << "record " << i;
  }
}

TEST_F(TraceFiles, PartsBeginAlikeAndLoseNothing) {
  Tracer tracer;
  TraceFileOptions rotated = options(path("log.jsonl"));
  rotated.rotate_bytes = 20'000;
  constexpr uint64_t kSteps = 2000;
  {
    const auto log = TraceLog::open(tracer, rotated, 2).value();
    for (uint64_t step = 0; step < kSteps; ++step) {
      tracer.add(step_record(step));
      if (step % 100 == 0) usleep(1000);
    }
  }
  simdjson::dom::parser parser;
  uint64_t next = 0;
  size_t lines = 0;
  int parts = 0;
  std::string last;
  for (std::string part = rotated.path; std::filesystem::exists(part);
       part = str_cat(rotated.path, ".", ++parts)) {
    bool first = true;
    for (const std::string& line : lines_of(part)) {
      simdjson::dom::element record;
      ASSERT_EQ(parser.parse(line).get(record), simdjson::SUCCESS) << line;
      const std::string type(record["event"]["type"].get_string().value());
      EXPECT_EQ(type == "TraceStarted", first) << part;
      first = false;
      lines += 1;
      last = line;
      if (type != "KvBlocks") continue;
      EXPECT_EQ(record["event"]["data"]["step"].get_uint64().value(), next++);
    }
  }
  EXPECT_EQ(next, kSteps);
  EXPECT_GT(parts, 2);
  simdjson::dom::element end;
  ASSERT_EQ(parser.parse(last).get(end), simdjson::SUCCESS);
  EXPECT_EQ(end["event"]["type"].get_string().value(), "TraceEnded");
  EXPECT_EQ(end["event"]["data"]["records"].get_uint64().value(), lines);
}

TEST_F(TraceFiles, AFullDiskEndsTracingWithOneWarning) {
  Tracer tracer;
  EXPECT_EQ(warnings_until_off(tracer, "/dev/full"), 1u);
}

TEST_F(TraceFiles, AClosedPipeEndsTracingWithOneWarning) {
  Tracer tracer;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // The file opens the pipe anew; then its one reader goes.
  std::thread reader([&] {
    char byte;
    while (read(ends[0], &byte, 1) == 1 && byte != '\n') continue;
    close(ends[0]);
  });
  EXPECT_EQ(warnings_until_off(tracer, str_cat("/proc/self/fd/", ends[1])), 1u);
  reader.join();
  close(ends[1]);
}

TEST_F(TraceFiles, APipeClosedBeforeTheEndDoesNotKillWhoEndsTheTrace) {
  Tracer tracer;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto log = TraceLog::open(tracer, options(str_cat("/proc/self/fd/", ends[1])), 2).value();
  close(ends[0]);
  testing::internal::CaptureStderr();
  log.reset();  // writes the last lines on this thread
  EXPECT_NE(testing::internal::GetCapturedStderr().find("Broken pipe"), std::string::npos);
  close(ends[1]);
}

TEST_F(TraceFiles, AReaderThatTakesNothingHoldsNobodyUp) {
  Tracer tracer;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(warnings_until_off(tracer, str_cat("/proc/self/fd/", ends[1])), 1u);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(TraceFiles, WhatCannotBeOpenedIsRefused) {
  Tracer tracer;
  const auto log = TraceLog::open(tracer, options(path("no/such/folder.jsonl")), 2);
  ASSERT_FALSE(log.ok());
  EXPECT_NE(log.message().find("no/such/folder.jsonl"), std::string::npos) << log.message();
  EXPECT_EQ(tracer.level(), TraceLevel::kOff);
}

TEST(PartScope, NestsAndSaysNothingBelowItsLevel) {
  Tracer tracer;
  TraceContext off{.tracer = &tracer, .level = TraceLevel::kStep, .parent = 5};
  PartScope silent(off, TraceLevel::kOp, "generation_loop", "x");
  EXPECT_EQ(off.parent, 5u);
  EXPECT_EQ(silent.end(), 0);
  TraceContext on{.tracer = &tracer, .level = TraceLevel::kOp, .parent = 5};
  {
    const PartScope outer(on, TraceLevel::kStep, "generation_loop", "outer");
    const SpanId span = on.parent;
    EXPECT_NE(span, 5u);
    const PartScope inner(on, TraceLevel::kOp, "generation_loop", "inner");
    EXPECT_NE(on.parent, span);
  }
  EXPECT_EQ(on.parent, 5u);
}

}  // namespace
}  // namespace tinyvllm
