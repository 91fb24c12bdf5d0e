// Reading trace logs: what is broken is counted and passed over, and cutting a log in parts, in
// whatever place, changes nothing.
#include "report/analyze/trace.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>

#include "base/strings.h"
#include "report/analyze/analysis.h"
#include "report/analyze/tables.h"

namespace tinyvllm {
namespace {

std::string write_log(const std::string& text) {
  const std::string path = str_cat(testing::TempDir(), "tinyvllm_trace_test_", getpid(), ".jsonl");
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string event(const std::string& type, const std::string& data) {
  return str_cat(R"({"timestamp":5,"span_id":null,"parent_span_id":null,"span_name":"",)",
                 R"("event":{"type":")", type, R"(","data":{)", data, "}}}");
}

std::string op_line(const std::string& name, const std::string& us) {
  return event("GpuOpCompleted", str_cat(R"("op_name":")", name, R"(","duration_us":)", us));
}

Trace read(const std::string& text) {
  Result<Trace> trace = read_trace(write_log(text));
  EXPECT_TRUE(trace.ok()) << trace.message();
  return std::move(trace).value();
}

TEST(Samples, PercentilesAreThoseOfASortedList) {
  std::mt19937 random(7);
  for (const size_t count : {1, 2, 3, 20, 21, 100, 101, 997}) {
    Samples samples(count);
    for (int64_t& sample : samples) sample = static_cast<int64_t>(random() % 1000000);
    Samples sorted = samples;
    std::sort(sorted.begin(), sorted.end());
    for (const double percent : {0.0, 50.0, 95.0, 99.0, 100.0}) {
      const double rank = percent / 100 * static_cast<double>(count - 1);
      const double below = static_cast<double>(sorted[static_cast<size_t>(std::floor(rank))]);
      const double above = static_cast<double>(sorted[static_cast<size_t>(std::ceil(rank))]);
      EXPECT_NEAR(percentile(samples, percent), std::lerp(below, above, rank - std::floor(rank)),
                  1e-6);
    }
  }
}

TEST(ReadTrace, WhatIsBrokenIsCountedAndPassedOver) {
  const Trace trace = read(str_cat(op_line("a", "3"), "\n", R"({"timestamp":1,"event":)", "\n\n",
                                   "not JSON at all\n", R"({"timestamp":1})", "\n[1,2]\n",
                                   event("FromTheFuture", R"("x":[1,{"y":2}])"), "\r\n",
                                   op_line("a", "\"4\""), "\n", op_line("a", "-4"), "\n",
                                   op_line("a", "1e999"), "\n", R"({"timestamp":9,"event":{"ty)"));
  EXPECT_EQ(trace.events, 4);
  EXPECT_EQ(trace.counts.lines, 10);
  EXPECT_EQ(trace.counts.broken, 6);
  EXPECT_TRUE(trace.counts.truncated_end);
  EXPECT_EQ(trace.counts.first_broken, static_cast<int64_t>(op_line("a", "3").size()) + 1);
  EXPECT_EQ(trace.ops.find("a")->samples, (Samples{3000, 4000}));
  const std::string text = to_text(analyze("x", trace, {}));
  EXPECT_NE(text.find("Broken lines: 5 ("), std::string::npos) << text;
  EXPECT_NE(text.find("Truncated: the last line"), std::string::npos);
  EXPECT_NE(text.find("Unknown event types: FromTheFuture (1)"), std::string::npos);
}

TEST(ReadTrace, AnEmptyLogHasEverySectionAndNoSamples) {
  const std::string text = to_text(analyze("x", read(""), {}));
  for (const char* title :
       {"Event type summary", "Matmul shape backend summary", "Roofline", "Requests"}) {
    EXPECT_NE(text.find(str_cat("\n", title, ":\n  no samples\n")), std::string::npos) << title;
  }
}

TEST(ReadTrace, PartsOfALogAddUpToTheWhole) {
  std::string log;
  for (int i = 0; i < 400; ++i) {
    log += op_line(str_cat("Generation Loop/block_", i % 7, "/linear"), str_cat(i * 37 % 101));
    log += "\n";
    log += event("InternalKernelCompleted",
                 str_cat(R"("parent_op_name":"p)", i % 3, R"(","internal_kernel_name":"k)", i % 5,
                         R"(","duration_us":)", i % 13, ".25"));
    log += i % 50 == 0 ? "\nbroken\n" : "\n";
    log += event(i % 2 == 0 ? "StepPlan" : "StepCompleted",
                 str_cat(R"("step":)", i / 2, R"(,"sequences":3,"duration_us":)", i));
    log += "\n";
  }
  const std::string path = write_log(log);
  const std::string whole = to_text(analyze("x", read(log), {}));
  const Result<LogFile> file = LogFile::open(path);
  ASSERT_TRUE(file.ok());
  for (const int parts : {2, 3, 17, 3000}) {
    const std::vector<int64_t> starts = file.value().split(parts);
    Trace sum;
    for (size_t p = 0; p + 1 < starts.size(); ++p) {
      Trace part;
      const Result<ScanCounts> counts = file.value().scan(
          starts[p], starts[p + 1], [&](const Record& record) { part.add(record); });
      ASSERT_TRUE(counts.ok());
      part.counts = counts.value();
      sum.take(std::move(part));
    }
    EXPECT_EQ(to_text(analyze("x", sum, {})), whole) << parts << " parts";
  }
}

TEST(Requests, TheLargestPartOfTheTimeIsTheReason) {
  const auto finished = [](const char* id, const char* times) {
    return event("RequestFinished",
                 str_cat(R"("request_id":")", id, R"(","reason":"stop","prompt_tokens":9,)",
                         R"("output_tokens":3,"e2e_us":100,)", times)) +
           "\n";
  };
  const TableSection table = requests_table(
      read(finished("a", R"("queue_us":70,"prefill_us":10,"decode_us":20)") +
           finished("b", R"("queue_us":0,"prefill_us":80,"decode_us":20,"cached_tokens":4)") +
           finished("c", R"("queue_us":0,"prefill_us":10,"decode_us":90,"preemptions":2)")),
      20);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].back().text, "waited in the queue (70.0%)");
  EXPECT_EQ(table.rows[1].back().text, "5 prompt tokens to compute (80.0%)");
  EXPECT_EQ(table.rows[2].back().text,
            "preempted 2 times; 3 tokens to generate at 4.5x the median (90.0%)");
}

}  // namespace
}  // namespace tinyvllm
