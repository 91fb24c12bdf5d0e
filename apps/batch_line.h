// One line of `run --prompts`: {"prompt": "…"} or {"messages": […], "tools": […]}, and any sampling
// fields.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "core/sampling_params.h"

namespace tinyvllm {

struct BatchLine {
  std::string prompt;
  std::string conversation;  // instead of a prompt: an object with messages, as templates take it
  SamplingParams sampling;
};

// `defaults` holds where the line says nothing. Errors name the field, and what it takes.
Result<BatchLine> parse_batch_line(std::string_view text, const SamplingParams& defaults);

}  // namespace tinyvllm
