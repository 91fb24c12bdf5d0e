// Every place of a block in turn becomes what an infinity or a NaN looks like: a row is refused
// exactly where reading it yields a number that is not finite.
#include "ops/finite.h"

#include <cstring>

#include "ops/reference/dequantize.h"
#include "tests/ops/cases.h"
#include "tests/ops/judge.h"

namespace tinyvllm::ops {
namespace {

bool reads_as_numbers(const Weights& w, int64_t row) {
  std::vector<float> values(static_cast<size_t>(w.in));
  reference::dequantize(w.dtype,
                        w.bytes.data() + row * static_cast<int64_t>(row_bytes(w.dtype, w.in)), w.in,
                        values.data());
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

TEST(FiniteTest, FindsWhatReadsAsNoNumber) {
  ThreadPool pool(2);
  constexpr int64_t kRow = 3;
  for (const DType dtype : kWeightTypes) {
    const Weights good = random_weights(dtype, 5, 512, 1);
    EXPECT_EQ(find_not_finite(pool, good.view()), std::nullopt) << dtype_name(dtype);
    const size_t bytes = row_bytes(dtype, 512);
    int found = 0;
    for (size_t at = 0; at + 2 <= bytes; at += 2) {
      for (const uint16_t pattern : {0x7C00, 0xFE01, 0x7F80, 0xFFC0}) {
        Weights bad = good;
        std::memcpy(bad.bytes.data() + kRow * bytes + at, &pattern, sizeof pattern);
        const auto row = find_not_finite(pool, bad.view());
        const bool refused = !reads_as_numbers(bad, kRow);
        EXPECT_EQ(row, refused ? std::optional(kRow) : std::nullopt)
            << dtype_name(dtype) << " byte " << at << " pattern " << pattern;
        found += refused ? 1 : 0;
      }
    }
    EXPECT_GT(found, 0) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace tinyvllm::ops
