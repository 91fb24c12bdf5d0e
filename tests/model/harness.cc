#include "tests/model/harness.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <stdlib.h>

#include "io/mapped_file.h"
#include "io/safetensors_reader.h"

namespace tinyvllm {
namespace {

int length_of(const std::vector<Tokens>& texts) {
  size_t length = 0;
  for (const Tokens& text : texts) length = std::max(length, text.size());
  return static_cast<int>(length);
}

// Tables of all texts with blocks in random order; number 0 stays the null block.
std::vector<BlockTables> deal_blocks(const std::vector<Tokens>& texts, size_t groups,
                                     int blocks_each, uint32_t seed) {
  std::vector<int32_t> blocks(texts.size() * static_cast<size_t>(blocks_each));
  std::iota(blocks.begin(), blocks.end(), 1);
  std::mt19937 random(seed);
  std::vector<BlockTables> tables(texts.size(), BlockTables(groups));
  for (size_t group = 0; group < groups; ++group) {
    std::shuffle(blocks.begin(), blocks.end(), random);
    auto next = blocks.begin();
    for (BlockTables& own : tables) {
      own[group].assign(next, next + blocks_each);
      next += blocks_each;
    }
  }
  return tables;
}

// Blocks that no query from `position` on can see go back to the pool: here, to the null block.
void forget_what_left_the_window(const std::vector<KvSpec>& groups, int position, int block_size,
                                 BlockTables& tables) {
  for (size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].window == 0) continue;
    const int first_seen = std::max(0, position - groups[group].window + 1);
    std::fill_n(tables[group].begin(), first_seen / block_size, kNullBlock);
  }
}

}  // namespace

std::string golden_path(const std::string& name, const std::string& file) {
  return test_data("golden/") + name + (file.empty() ? "" : "/" + file);
}

std::vector<GoldenPrompt> read_golden(const std::string& name) {
  const auto file = MappedFile::open(golden_path(name, "golden.safetensors")).value();
  const std::vector<WeightTensor> list = read_safetensors(file->bytes()).value();
  WeightSource tensors;
  for (const WeightTensor& tensor : list) tensors.insert(tensor);
  std::vector<GoldenPrompt> prompts;
  while (const WeightTensor* ids = tensors.find(str_cat("prompt.", prompts.size()))) {
    const TensorView logits = tensors.find(str_cat("logits.", prompts.size()))->view;
    GoldenPrompt prompt;
    const auto* first = static_cast<const float*>(ids->view.data);
    prompt.tokens.assign(first, first + ids->view.shape[0]);
    prompt.logits.columns = logits.shape[1];
    prompt.logits.values.resize(static_cast<size_t>(logits.shape.elements()));
    std::memcpy(prompt.logits.values.data(), logits.data, logits.bytes());
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

std::unique_ptr<Runtime> make_runtime(int threads, Isa isa) {
  ::setenv("TINYVLLM_ISA", isa_name(isa), 1);
  auto runtime = Runtime::create({threads}).value();
  ::unsetenv("TINYVLLM_ISA");
  return runtime;
}

LoadedModel load(Runtime& runtime, const std::string& path, const ModelOptions& options) {
  LoadedModel loaded;
  loaded.files = ModelFiles::open(path).value();
  loaded.model = load_model(*loaded.files, runtime.device(), runtime.pool(), options).value();
  return loaded;
}

std::string load_error(const std::string& path) {
  const auto files = ModelFiles::open(path);
  if (!files.ok()) return files.message();
  const auto runtime = make_runtime(1);
  return load_model(*files.value(), runtime->device(), runtime->pool(), {}).message();
}

Step whole(const std::vector<Tokens>& texts) {
  Step step;
  for (size_t i = 0; i < texts.size(); ++i) step.push_back({i, static_cast<int>(texts[i].size())});
  return step;
}

std::vector<Logits> run_steps(Runtime& runtime, const Model& model,
                              const std::vector<Tokens>& texts, const std::vector<Step>& steps,
                              int block_size, uint32_t seed) {
  const ModelInfo& info = model.info();
  const int blocks_each = (length_of(texts) + block_size - 1) / block_size;
  RunnerConfig config;
  config.block_size = block_size;
  config.num_blocks.assign(info.kv_groups.size(), 1 + blocks_each * static_cast<int>(texts.size()));
  config.max_num_seqs = static_cast<int>(texts.size());
  config.max_num_batched_tokens = length_of(texts) * static_cast<int>(texts.size());
  config.max_num_logits = config.max_num_batched_tokens;
  const auto runner = ModelRunner::create(runtime, model, config).value();

  std::vector<BlockTables> tables = deal_blocks(texts, info.kv_groups.size(), blocks_each, seed);
  std::vector<int> fed(texts.size());
  std::vector<Logits> logits(texts.size(), Logits{info.vocab_size, {}});
  for (const Step& step : steps) {
    StepPlan plan;
    for (const Share& share : step) {
      const Tokens& text = texts[share.text];
      int& position = fed[share.text];
      forget_what_left_the_window(info.kv_groups, position, block_size, tables[share.text]);
      SequencePlan sequence;
      sequence.sequence = share.text + 1;
      sequence.position = position;
      sequence.num_tokens = share.count;
      sequence.block_tables = &tables[share.text];
      sequence.all_logits = true;
      plan.sequences.push_back(sequence);
      plan.tokens.insert(plan.tokens.end(), text.begin() + position,
                         text.begin() + position + share.count);
      position += share.count;
    }
    runner->on_logits([&](const StepPlan&, const Tensor& rows) {
      const float* row = rows.f32();
      for (const Share& share : step) {
        const float* end = row + share.count * rows.stride;
        logits[share.text].values.insert(logits[share.text].values.end(), row, end);
        row = end;
      }
    });
    runner->wait(runner->submit(plan));
  }
  return logits;
}

}  // namespace tinyvllm
