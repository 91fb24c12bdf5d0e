// The numerics contract for whole models, on any device: a text's logits are the same bits whatever
// runs with it, however it is cut, wherever its blocks lie, and on any number of threads.
#pragma once

#include <cstring>
#include <gtest/gtest.h>

#include "tests/model/harness.h"

namespace tinyvllm {

inline Tokens text_of(int length, int seed) {
  Tokens tokens;
  for (int i = 0; i < length; ++i) tokens.push_back((i * i * 7 + i * 3 + seed * 11) % 65);
  return tokens;
}

// Texts longer than any window and than a tile of attention, of lengths that nothing divides.
inline std::vector<Tokens> crowd() { return {text_of(75, 1), text_of(20, 2), text_of(43, 3)}; }

inline std::vector<Step> in_chunks(size_t text, int length, int chunk) {
  std::vector<Step> steps;
  for (int from = 0; from < length; from += chunk) {
    steps.push_back({{text, std::min(chunk, length - from)}});
  }
  return steps;
}

// The first text a bit at a time, while the others begin, decode and end around it.
inline std::vector<Step> crowded() {
  std::vector<Step> steps = {
      {{0, 5}, {1, 17}}, {{2, 30}, {0, 40}, {1, 1}}, {{1, 1}, {0, 1}, {2, 1}}};
  steps.push_back({{2, 12}, {0, 7}, {1, 1}});
  for (int i = 0; i < 22; ++i) steps.push_back({{0, 1}});
  return steps;
}

inline void expect_same_bits(const Logits& actual, const Logits& expected, const std::string& how) {
  ASSERT_EQ(actual.values.size(), expected.values.size()) << how;
  EXPECT_EQ(std::memcmp(actual.values.data(), expected.values.data(),
                        expected.values.size() * sizeof(float)),
            0)
      << how;
}

inline void expect_same_however_computed(const std::vector<Runtime*>& runtimes,
                                         const std::string& name, DType kv_dtype) {
  ModelOptions options;
  options.kv_dtype = kv_dtype;
  const LoadedModel loaded = load(*runtimes[0], golden_path(name, "model.gguf"), options);
  const Model& model = *loaded.model;
  const std::vector<Tokens> texts = crowd();
  const std::vector<Tokens> alone = {texts[0]};
  const Logits expected = run_steps(*runtimes[0], model, alone, {whole(alone)})[0];

  for (Runtime* runtime : runtimes) {
    const std::string threads = str_cat(", ", runtime->pool().size(), " threads");
    for (const int chunk : {1, 7, 32, 75}) {
      for (const int block : {1, 8, 19, 64}) {
        const auto steps = in_chunks(0, 75, chunk);
        expect_same_bits(run_steps(*runtime, model, alone, steps, block, 5)[0], expected,
                         str_cat("chunks of ", chunk, ", blocks of ", block, threads));
      }
    }
    for (const int block : {4, 16}) {
      expect_same_bits(run_steps(*runtime, model, texts, {whole(texts)}, block, 3)[0], expected,
                       str_cat("one batch, blocks of ", block, threads));
      expect_same_bits(run_steps(*runtime, model, texts, crowded(), block, 4)[0], expected,
                       str_cat("a crowd, blocks of ", block, threads));
    }
  }
}

// A model and the type of its cache.
class InvarianceTest : public testing::TestWithParam<std::tuple<std::string, DType>> {
 public:
  static auto values() {
    return testing::Combine(testing::ValuesIn(kGoldenModels),
                            testing::Values(DType::kI8, DType::kF16, DType::kF32));
  }
  static std::string name_of(const testing::TestParamInfo<ParamType>& info) {
    return str_cat(std::get<0>(info.param), "_", dtype_name(std::get<1>(info.param)));
  }

 protected:
  void expect_same_on(const std::vector<Runtime*>& runtimes) const {
    expect_same_however_computed(runtimes, std::get<0>(GetParam()), std::get<1>(GetParam()));
  }
};

}  // namespace tinyvllm
