// What a KV cache is made of, and the words for one that cannot be.
#include "engine/kv_sizing.h"

#include <gtest/gtest.h>

namespace tinyvllm {
namespace {

constexpr int64_t kContext = 1024;
const std::vector<KvSpec> kSpecs = {
    {.layers = 2, .kv_heads = 2, .k_dim = 64, .v_dim = 64, .dtype = DType::kF16}};

std::string refusal(size_t free_bytes, const EngineOptions& options) {
  return size_kv_cache(kSpecs, kContext, free_bytes, options).message();
}

TEST(KvSizing, NoMemoryIsTheMachinesFaultUnlessTheUserNamedIt) {
  EngineOptions options;
  options.max_num_batched_tokens = 512;
  const std::string machine = refusal(100, options);
  EXPECT_NE(machine.find("weights and activations leave 100 B"), std::string::npos) << machine;
  EXPECT_NE(machine.find("--gpu-memory-utilization"), std::string::npos) << machine;
  EXPECT_EQ(machine.find("kv_cache_memory"), std::string::npos) << machine;
  options.kv_cache_memory = 100;
  EXPECT_EQ(refusal(size_t{1} << 30, options).find("kv_cache_memory: 100 B hold not even 16"), 0u);
}

TEST(KvSizing, AContextThatNobodyAskedForIsLoweredInWords) {
  EngineOptions options;
  options.max_num_batched_tokens = 512;
  const size_t half = size_kv_cache(kSpecs, kContext, SIZE_MAX, options).value().bytes /
                      static_cast<size_t>(options.max_num_seqs) / 2;
  const KvSizing sizing = size_kv_cache(kSpecs, kContext, half, options).value();
  EXPECT_LT(sizing.max_model_len, kContext);
  EXPECT_LE(sizing.bytes, half);
  EXPECT_NE(sizing.lowered.find("so the context is"), std::string::npos);
  options.max_model_len = kContext;
  EXPECT_EQ(refusal(half, options).find("max_model_len: the KV cache of"), 0u);
}

}  // namespace
}  // namespace tinyvllm
