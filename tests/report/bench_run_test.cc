// The arithmetic of benchmarks: percentiles as numpy has them, runs that survive their JSON, and
// verdicts that neither miss a change nor cry over noise.
#include "report/bench_run.h"

#include <gtest/gtest.h>

#include "report/compare.h"
#include "report/samples.h"

namespace tinyvllm {
namespace {

TEST(Samples, PercentilesAreThoseOfNumpy) {
  const std::vector<double> samples = {9, 1, 4, 16};
  EXPECT_DOUBLE_EQ(median(samples), 6.5);
  EXPECT_DOUBLE_EQ(percentile(samples, 99), 15.79);
  EXPECT_DOUBLE_EQ(percentile(samples, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(samples, 100), 16);
  EXPECT_DOUBLE_EQ(percentile({7}, 99), 7);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0);
  EXPECT_DOUBLE_EQ(mean(samples), 7.5);
  EXPECT_NEAR(deviation(samples), 5.678908, 1e-6);
  EXPECT_DOUBLE_EQ(spread({90, 100, 120}), 0.15);
}

BenchRun run_of(std::vector<BenchResult> results) {
  BenchRun run{"throughput", "1.0", "2026-01-02"};
  run.results = std::move(results);
  return run;
}

TEST(BenchRun, SurvivesItsJson) {
  BenchRun run = run_of({{"decode", "tok/s", {99, 100, 102}, 200}, {"TTFT", "ms", {8}, 4}});
  run.machine = {{"cpu", "a \"fast\" one"}, {"threads", 2.0}};
  const BenchRun read = read_bench_run(to_json(run), "a.json").value();
  EXPECT_EQ(to_json(read), to_json(run));
  EXPECT_DOUBLE_EQ(*read.results[0].utilization(), 0.5);
  EXPECT_DOUBLE_EQ(*read.results[1].utilization(), 0.5);  // twice the least time there is
}

TEST(BenchRun, RefusesWhatNoBenchWrote) {
  for (const char* text : {"", "[]", "{}", R"({"results": [{}]})", R"({"results": 3})",
                           R"({"results": [{"name": "a", "samples": ["x"]}]})"}) {
    const Result<BenchRun> read = read_bench_run(text, "a.json");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.message().find("a.json"), std::string::npos);
  }
}

Comparison only(BenchResult a, BenchResult b) {
  const auto all = compare(run_of({std::move(a)}), run_of({std::move(b)}));
  EXPECT_EQ(all.size(), 1u);
  return all.front();
}

TEST(Compare, TellsChangeFromNoise) {
  const std::vector<double> quiet = {99.9, 100, 100.1}, noisy = {80, 100, 120};
  EXPECT_EQ(only({"a", "tok/s", quiet}, {"a", "tok/s", {106, 107, 108}}).verdict, Verdict::kBetter);
  EXPECT_EQ(only({"a", "tok/s", quiet}, {"a", "tok/s", {93, 94, 94.5}}).verdict, Verdict::kWorse);
  EXPECT_EQ(only({"a", "ms", quiet}, {"a", "ms", {106, 107, 108}}).verdict, Verdict::kWorse);
  EXPECT_EQ(only({"a", "ms", quiet}, {"a", "ms", {93, 94, 94.5}}).verdict, Verdict::kBetter);
  EXPECT_EQ(only({"a", "ms", noisy}, {"a", "ms", {106, 107, 108}}).verdict, Verdict::kSame);
  EXPECT_EQ(only({"a", "ms", quiet}, {"a", "ms", {101, 101.5, 102}}).verdict, Verdict::kSame);
  EXPECT_EQ(only({"a", "ms", {100}}, {"a", "ms", {107}}).verdict, Verdict::kSame);
  EXPECT_EQ(only({"a", "ms", {100}}, {"a", "ms", {120}}).verdict, Verdict::kWorse);
}

TEST(Compare, ChangeIsHowMuchBetter) {
  EXPECT_DOUBLE_EQ(only({"a", "tok/s", {100}}, {"a", "tok/s", {150}}).change, 0.5);
  EXPECT_DOUBLE_EQ(only({"a", "ms", {150}}, {"a", "ms", {100}}).change, 0.5);
}

TEST(Compare, NamesWhatOnlyOneHas) {
  const auto all = compare(run_of({{"a", "ms", {1}}, {"b", "ms", {1}}}),
                           run_of({{"c", "ms", {1}}, {"b", "ms", {1}}}));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "b");
  EXPECT_EQ(all[1].verdict, Verdict::kOnlyBefore);
  EXPECT_EQ(all[2].verdict, Verdict::kOnlyAfter);
}

}  // namespace
}  // namespace tinyvllm
