// One model in every weight type, beside the same model in F32: the logits are apart by what the
// bits explain, about twice as far for each bit removed.
#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>

#include "io/gguf_writer.h"
#include "ops/reference/quantize.h"
#include "tests/io/temp_folder.h"
#include "tests/model/harness.h"

namespace tinyvllm {
namespace {

constexpr int64_t kHidden = 256;  // a multiple of the largest block
constexpr int64_t kFfn = 512;
constexpr int64_t kVocab = 120;
constexpr int64_t kHeads = 4, kKvHeads = 2, kHeadDim = 64;
constexpr int kLayers = 2;

GgufPairs pairs() {
  GgufPairs pairs;
  pairs.text("general.architecture", "llama");
  pairs.u32("llama.block_count", kLayers);
  pairs.u32("llama.context_length", 64);
  pairs.u32("llama.embedding_length", kHidden);
  pairs.u32("llama.feed_forward_length", kFfn);
  pairs.u32("llama.attention.head_count", kHeads);
  pairs.u32("llama.attention.head_count_kv", kKvHeads);
  pairs.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  return pairs;
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Matrices in the given type, norms in F32.
std::vector<GgufTensor> tensors(DType dtype) {
  std::vector<GgufTensor> list;
  const auto matrix = [&](const std::string& name, int64_t out, int64_t in) {
    list.push_back({name + ".weight", dtype, {out, in}});
  };
  const auto norm = [&](const std::string& name) {
    list.push_back({name + ".weight", DType::kF32, {kHidden}});
  };
  matrix("token_embd", kVocab, kHidden);
  for (int i = 0; i < kLayers; ++i) {
    const std::string at = str_cat("blk.", i, ".");
    norm(at + "attn_norm");
    matrix(at + "attn_q", kHeads * kHeadDim, kHidden);
    matrix(at + "attn_k", kKvHeads * kHeadDim, kHidden);
    matrix(at + "attn_v", kKvHeads * kHeadDim, kHidden);
    matrix(at + "attn_output", kHidden, kHeads * kHeadDim);
    norm(at + "ffn_norm");
    matrix(at + "ffn_gate", kFfn, kHidden);
    matrix(at + "ffn_up", kFfn, kHidden);
    matrix(at + "ffn_down", kHidden, kFfn);
  }
  norm("output_norm");
  matrix("output", kVocab, kHidden);
  return list;
}

// The same random numbers for every type.
void write_model(const std::string& path, DType dtype) {
  auto writer = GgufWriter::create(path, pairs(), tensors(dtype)).value();
  std::mt19937 random(1);
  for (const GgufTensor& tensor : tensors(dtype)) {
    const bool is_norm = tensor.shape.rank == 1;
    const float scale = is_norm ? 0.2f : 1 / std::sqrt(static_cast<float>(tensor.shape[1]));
    std::normal_distribution<float> normal(is_norm ? 1 : 0, scale);
    std::vector<float> row(static_cast<size_t>(tensor.shape.row_elements()));
    std::vector<char> bytes(row_bytes(tensor.dtype, tensor.shape.row_elements()));
    for (int64_t r = 0; r < tensor.shape.rows(); ++r) {
      for (float& value : row) value = normal(random);
      ops::reference::quantize_row(tensor.dtype, row.data(), tensor.shape.row_elements(),
                                   bytes.data());
      ASSERT_TRUE(writer->write(bytes.data(), bytes.size()).ok());
    }
  }
  ASSERT_TRUE(writer->finish().ok());
}

Logits logits_of(DType dtype) {
  const TempFolder folder;
  const std::string path = folder.path("model.gguf");
  write_model(path, dtype);
  const auto runtime = make_runtime(2);
  ModelOptions options;
  options.kv_dtype = DType::kF32;
  const LoadedModel loaded = load(*runtime, path, options);
  Tokens text;
  for (int i = 0; i < 40; ++i) text.push_back(i * i * 13 % kVocab);
  return run_steps(*runtime, *loaded.model, {text}, {whole({text})})[0];
}

// Where one scale in a file of blocks is no number, the tensor is named.
TEST(Dtypes, ScalesThatAreNoNumbersAreRefused) {
  const TempFolder folder;
  const std::string path = folder.path("model.gguf");
  write_model(path, DType::kQ4_K);
  EXPECT_EQ(load_error(path), "");
  size_t at = 0;
  {
    const auto files = ModelFiles::open(path).value();
    const WeightTensor* tensor = files->weights().find("blk.1.ffn_up.weight");
    const std::string block(static_cast<const char*>(tensor->view.data), 144);
    at = read_bytes(path).find(block);
    ASSERT_NE(at, std::string::npos);
  }
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(at))
      .write("\x00\x7C", 2);  // infinity
  EXPECT_THAT(load_error(path),
              testing::HasSubstr("tensor 'blk.1.ffn_up.weight' holds NaN or infinity in row 0"));
}

// Root mean square of the difference, relative to that of the F32 logits.
double apart(const Logits& a, const Logits& f32) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < f32.values.size(); ++i) {
    difference += std::pow(static_cast<double>(a.values[i]) - f32.values[i], 2);
    size += std::pow(static_cast<double>(f32.values[i]), 2);
  }
  return std::sqrt(difference / size);
}

TEST(Dtypes, EveryBitRemovedDoublesTheError) {
  const Logits f32 = logits_of(DType::kF32);
  std::map<DType, double> error;
  for (const DType dtype :
       {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ6_K, DType::kQ5_K, DType::kQ5_1,
        DType::kQ5_0, DType::kQ4_K, DType::kQ4_1, DType::kQ4_0, DType::kQ3_K, DType::kQ2_K}) {
    error[dtype] = apart(logits_of(dtype), f32);
  }
  const auto expect_growth = [&](DType more, DType fewer, double least, double most) {
    const double growth = error[fewer] / error[more];
    EXPECT_GT(growth, least) << dtype_name(more) << " " << error[more] << ", " << dtype_name(fewer);
    EXPECT_LT(growth, most) << dtype_name(more) << " " << error[more] << ", " << dtype_name(fewer);
  };
  EXPECT_LT(error[DType::kF16], 2e-3);
  expect_growth(DType::kF16, DType::kBF16, 6, 11);  // three bits of mantissa
  expect_growth(DType::kBF16, DType::kQ8_0, 1.5, 6);
  expect_growth(DType::kQ8_0, DType::kQ6_K, 2.5, 5);
  for (const auto& [more, fewer] : {std::pair(DType::kQ6_K, DType::kQ5_K),
                                    {DType::kQ5_K, DType::kQ4_K},
                                    {DType::kQ4_K, DType::kQ3_K},
                                    {DType::kQ3_K, DType::kQ2_K},
                                    {DType::kQ5_1, DType::kQ4_1},
                                    {DType::kQ5_0, DType::kQ4_0}}) {
    expect_growth(more, fewer, 1.4, 2.4);
  }
  // Of equal bits, more scales and minima are closer.
  expect_growth(DType::kQ5_1, DType::kQ5_0, 1, 1.4);
  expect_growth(DType::kQ4_1, DType::kQ4_0, 1, 1.4);
}

}  // namespace
}  // namespace tinyvllm
