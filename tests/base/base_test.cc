// Ground that everything stands on: numbers, text, errors, threads.
#include <atomic>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>
#include <vector>

#include "base/dtype.h"
#include "base/fast_clock.h"
#include "base/half.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "base/utf8.h"

namespace tinyvllm {
namespace {

TEST(Half, EveryF16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = f16_to_f32(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    } else {
      EXPECT_EQ(f32_to_f16(value), half);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), f32_to_f16(1.0f));                // tie, to even: down
  EXPECT_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), f32_to_f16(1.0f + 0x1p-9f));  // tie, to even: up
  EXPECT_TRUE(std::isinf(f16_to_f32(f32_to_f16(65520.0f))));
  EXPECT_EQ(f16_to_f32(f32_to_f16(65519.0f)), 65504.0f);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(1.0f + 0x1p-8f)), 1.0f);
  EXPECT_EQ(f16_to_f32(f32_to_f16(0x1p-24f)), 0x1p-24f);
  EXPECT_EQ(f32_to_f16(0x1p-26f), 0);
}

TEST(Utf8, RefusesWhatTheStandardRefuses) {
  EXPECT_TRUE(is_utf8("aé漢🎉"));
  for (const char* bad :
       {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xE6\xBC", "\xFF"}) {
    EXPECT_FALSE(is_utf8(bad)) << printable(bad);
  }
  EXPECT_EQ(utf8_replace_invalid("a\xE6\xBC"
                                 "b\x80"),
            "a\uFFFDb\uFFFD");
}

TEST(Utf8, KnowsAnUnfinishedEnd) {
  const std::string text = "漢🎉";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view head = std::string_view(text).substr(0, cut);
    const size_t open = utf8_incomplete_suffix(head);
    EXPECT_TRUE(is_utf8(head.substr(0, cut - open))) << cut;
    EXPECT_EQ(open, cut < 3 ? cut : cut < 7 ? cut - 3 : 0) << cut;
  }
  EXPECT_EQ(utf8_incomplete_suffix("\x80\x80"), 0u);
}

TEST(Utf8, NextUndoesAppend) {
  for (const char32_t c : {U'a', U'é', U'漢', U'🎉', U'\U0010FFFF'}) {
    std::string text;
    utf8_append(text, c);
    size_t at = 0;
    EXPECT_EQ(utf8_next(text, at), c);
    EXPECT_EQ(at, text.size());
  }
}

TEST(Strings, GroupsDigits) {
  EXPECT_EQ(group_digits(0), "0");
  EXPECT_EQ(group_digits(999), "999");
  EXPECT_EQ(group_digits(49152), "49,152");
  EXPECT_EQ(group_digits(-123456), "-123,456");
  EXPECT_EQ(group_digits(1234567), "1,234,567");
}

TEST(Json, EscapesAndSeparates) {
  JsonWriter json;
  json.begin_object().field("a\"b", "x\n\x01\xFF").field("ids", std::vector<int>{1, 2});
  json.field("half", 0.5).field("nan", std::nan("")).field("yes", true).end_object();
  EXPECT_EQ(
      json.str(),
      "{\"a\\\"b\":\"x\\n\\u0001\uFFFD\",\"ids\":[1,2],\"half\":0.5,\"nan\":null,\"yes\":true}");
}

Result<int> half_of(int value) {
  if (value % 2 != 0) return error("expected an even number, found ", value);
  return value / 2;
}
Result<int> quarter_of(int value) {
  TRY_ASSIGN(const int half, half_of(value));
  return half_of(half);
}

TEST(Result, CarriesTheFirstErrorUp) {
  EXPECT_EQ(quarter_of(8).value(), 2);
  EXPECT_EQ(quarter_of(6).message(), "expected an even number, found 3");
}

TEST(DType, NamesAndNumbersAgree) {
  EXPECT_EQ(dtype_from_name("q4_k"), DType::kQ4_K);
  EXPECT_EQ(dtype_from_id(14), DType::kQ6_K);
  EXPECT_FALSE(dtype_from_id(4).has_value());
  EXPECT_EQ(row_bytes(DType::kQ4_1, 576), 360u);
}

TEST(FastClock, SaysWhatTheOtherSays) {
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // it knows no rate before
  const FastClock clock = FastClock::set();
  const int64_t end = now_ns() + 50'000'000;
  int64_t before = now_ns();
  while (before < end) {
    const int64_t between = clock.now();
    const int64_t after = now_ns();
    ASSERT_GE(between, before - 10'000);
    ASSERT_LE(between, after + 10'000);
    before = after;
  }
}

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      pool.parallel_for(tasks, [&](int64_t task, int thread) {
        ASSERT_LT(thread, threads);
        runs[static_cast<size_t>(task)].fetch_add(1);
      });
      for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, ManyShortLoopsInARow) {
  ThreadPool pool(8);  // more threads than cores: workers arrive late, or not at all
  for (int64_t round = 0; round < 20000; ++round) {
    const int64_t tasks = 1 + round % 13;
    std::atomic<int64_t> sum{0};
    pool.parallel_for(tasks, [&, round](int64_t task, int) { sum += round + task; });
    ASSERT_EQ(sum.load(), tasks * round + tasks * (tasks - 1) / 2);
  }
}

TEST(ThreadPool, AWorkerThatWaitsDoesSpareWork) {
  struct Counting final : SpareWork {
    bool do_some(const std::function<bool()>& still_waiting) override {
      EXPECT_NE(std::this_thread::get_id(), caller);
      while (still_waiting()) {  // ends when the next loop begins: the caller counts on it
      }
      done.fetch_add(1);
      return true;
    }
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> done{0};
  } spare;
  ThreadPool pool(3, &spare);
  const Stopwatch clock;
  while (spare.done.load() == 0 && clock.seconds() < 20) {
    pool.parallel_for(2, [](int64_t, int) {});
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_GT(spare.done.load(), 0);
}

TEST(ThreadPool, WakesAfterParking) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, [&](int64_t task, int) { sum += task; });
    EXPECT_EQ(sum.load(), 4950);
  }
}

}  // namespace
}  // namespace tinyvllm
