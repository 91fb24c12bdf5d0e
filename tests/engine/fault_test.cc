// Weights so large that numbers overflow: a request that meets them fails, alone where it alone met
// them, and the log says in which layer.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <unistd.h>

#include "engine/engine_core.h"
#include "engine/model_runner.h"
#include "model/registry.h"
#include "tests/data.h"

namespace tinyvllm {
namespace {

// The tiny llama with some weights replaced, under an engine that speaks tokens.
class Fault : public testing::Test {
 protected:
  struct Patch {
    std::string tensor;
    int64_t index = 0;
    float value = 0;
  };
  void load(const std::vector<Patch>& patches) {
    const std::string golden = test_data("golden/llama/model.gguf");
    path_ = std::filesystem::temp_directory_path() / str_cat("tinyvllm-fault-", getpid(), ".gguf");
    std::filesystem::copy_file(golden, path_, std::filesystem::copy_options::overwrite_existing);
    const auto whole = ModelFiles::open(golden).value();
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    for (const Patch& patch : patches) {
      const WeightTensor* found = whole->weights().find(patch.tensor);
      ASSERT_NE(found, nullptr) << patch.tensor;
      ASSERT_EQ(found->view.dtype, DType::kF32);
      file.seekp(static_cast<std::streamoff>(found->file_offset) + patch.index * 4);
      file.write(reinterpret_cast<const char*>(&patch.value), sizeof patch.value);
    }
    file.close();

    files_ = ModelFiles::open(path_).value();
    runtime_ = Runtime::create({2}).value();
    model_ = load_model(*files_, runtime_->device(), runtime_->pool(), {}).value();
    RunnerConfig config;
    config.num_blocks = {40};
    config.max_num_seqs = 8;
    runner_ = ModelRunner::create(*runtime_, *model_, config).value();
    blocks_ = std::make_unique<BlockManager>(std::vector<KvGroup>{{40, 0}}, 16, true);
    SchedulerConfig scheduler;
    scheduler.max_model_len = 96;
    core_ = std::make_unique<EngineCore>(*runner_, *blocks_, scheduler, 1);
  }
  ~Fault() override { std::filesystem::remove(path_); }

  void add(SequenceId id, std::vector<int32_t> prompt) {
    Request request;
    request.id = id;
    request.prompt = std::move(prompt);
    request.sampling.temperature = 0;
    request.sampling.max_tokens = 4;
    request.sampling.allowed_token_ids = std::vector<int32_t>{1, 2, 3};
    ASSERT_TRUE(core_->add(std::move(request)).ok());
  }
  // How each sequence ended; what was logged meanwhile.
  std::map<SequenceId, FinishReason> run() {
    std::map<SequenceId, FinishReason> ends;
    testing::internal::CaptureStderr();
    while (core_->has_work()) {
      for (const SequenceOutput& output : core_->step()) {
        if (output.finish != FinishReason::kNone) ends[output.sequence] = output.finish;
      }
    }
    log_ = testing::internal::GetCapturedStderr();
    EXPECT_EQ(blocks_->used_blocks(), 0);
    return ends;
  }

  std::filesystem::path path_;
  std::unique_ptr<ModelFiles> files_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<BlockManager> blocks_;
  std::unique_ptr<EngineCore> core_;
  std::string log_;
};

constexpr float kHuge = 3e38f;

TEST_F(Fault, OnlyTheRequestsThatItTouchedFail) {
  // A dimension that the first norm blows up, and that only token 40 has anything in.
  std::vector<Patch> patches = {{"blk.0.attn_norm.weight", 3, kHuge}};
  for (int token = 0; token < 65; ++token) {
    patches.push_back({"token_embd.weight", token * 28 + 3, token == 40 ? 1000.0f : 0.0f});
  }
  load(patches);
  add(1, {5, 6, 7});
  add(2, {5, 40, 7, 9});
  add(3, {9, 8});
  const auto ends = run();
  EXPECT_EQ(ends.at(1), FinishReason::kLength);
  EXPECT_EQ(ends.at(2), FinishReason::kError);
  EXPECT_EQ(ends.at(3), FinishReason::kLength);
  EXPECT_NE(log_.find("1 of 3 sequences"), std::string::npos) << log_;
  EXPECT_NE(log_.find("layer 0, "), std::string::npos) << log_;
}

TEST_F(Fault, TheLogNamesTheLayer) {
  load({{"blk.1.ffn_norm.weight", 17, kHuge}});
  add(1, {5, 6, 7});
  EXPECT_EQ(run().at(1), FinishReason::kError);
  EXPECT_NE(log_.find("layer 1, "), std::string::npos) << log_;
}

}  // namespace
}  // namespace tinyvllm
