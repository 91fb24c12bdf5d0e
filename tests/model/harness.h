// The tiny models of tests/data/golden, and a way to run any model over hand-made steps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/runtime.h"
#include "engine/model_runner.h"
#include "io/model_files.h"
#include "model/registry.h"
#include "tests/data.h"

namespace tinyvllm {

using Tokens = std::vector<int32_t>;

// Logits of all positions of one text, [tokens, vocabulary].
struct Logits {
  int64_t columns = 0;
  std::vector<float> values;

  int64_t rows() const { return static_cast<int64_t>(values.size()) / columns; }
  const float* row(int64_t i) const { return values.data() + i * columns; }
};

struct GoldenPrompt {
  Tokens tokens;
  Logits logits;  // that transformers computed
};
std::string golden_path(const std::string& name, const std::string& file = "");
std::vector<GoldenPrompt> read_golden(const std::string& name);

std::unique_ptr<Runtime> make_runtime(int threads, Isa isa = supported_isas().back());

// Weights stay mapped as long as the model lives.
struct LoadedModel {
  std::unique_ptr<ModelFiles> files;
  std::unique_ptr<Model> model;
};
LoadedModel load(Runtime& runtime, const std::string& path, const ModelOptions& options);
std::string load_error(const std::string& path);  // "" when it loads

// The next `count` tokens of text number `text`.
struct Share {
  size_t text;
  int count;
};
using Step = std::vector<Share>;

Step whole(const std::vector<Tokens>& texts);  // all texts in one step

// Feeds texts as the steps say and gives the logits of every token. Blocks are dealt out in an
// order that `seed` decides; those that have left a group's window are taken away.
std::vector<Logits> run_steps(Runtime& runtime, const Model& model,
                              const std::vector<Tokens>& texts, const std::vector<Step>& steps,
                              int block_size = 16, uint32_t seed = 1);

}  // namespace tinyvllm
