// A request as the engine knows it: token ids in, token ids out. Text and templates stay outside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/sampling_params.h"
#include "core/step_plan.h"
#include "tinyvllm/outputs.h"

namespace tinyvllm {

struct Request {
  SequenceId id = 0;
  std::vector<int32_t> prompt;
  SamplingParams sampling;
  int priority = 0;        // lower runs first; among equals, first come first served
  std::string cache_salt;  // prompts with different salts share no cache
  // Of a request's several answers, all but the first name the first here, to share its prompt.
  SequenceId shares_prompt_of = 0;
  uint32_t answer = 0;
  bool reuse_prefix = true;  // false when every prompt position must be computed
  // Whether a token is fed only when it is known: the device that samples others does not have it.
  bool awaits_tokens = false;
};

}  // namespace tinyvllm
