// tinyvllm run --prompts IN.jsonl --output OUT.jsonl: many prompts through one engine, batched
// continuously.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/batch_line.h"
#include "apps/batch_output.h"
#include "apps/line_reader.h"
#include "engine/llm_engine.h"

namespace tinyvllm {

struct BatchFiles {
  LineReader input;
  BatchOutput output;
  std::string settings;
  int64_t prompts_left = 0;
};

// Opens both files and checks that what the output holds already are answers to this input.
// `settings` is what besides a line decides its answer: the model and the flags, in words.
Result<BatchFiles> open_batch(const std::string& prompts, const std::string& output,
                              const std::string& settings);

struct BatchOptions {
  SamplingParams defaults;
  int max_num_seqs = 256;
  bool json = false;  // a summary on stdout
  std::function<Result<std::vector<int32_t>>(const BatchLine&)> encode;
};

// Answers what is left, until Ctrl-C. A line that fails becomes a line with its error.
Status run_batch(LLMEngine& engine, BatchFiles files, const BatchOptions& options);

}  // namespace tinyvllm
