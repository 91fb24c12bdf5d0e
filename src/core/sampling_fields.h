// The fields of SamplingParams by name, so that flags, lines of JSON and a chat's /set need no list
// of their own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "core/sampling_params.h"

namespace tinyvllm {

using SamplingMember =
    std::variant<double SamplingParams::*, int SamplingParams::*, bool SamplingParams::*,
                 std::optional<int> SamplingParams::*, std::optional<uint64_t> SamplingParams::*,
                 std::vector<std::string> SamplingParams::*, std::vector<int32_t> SamplingParams::*,
                 std::optional<std::vector<int32_t>> SamplingParams::*,
                 std::vector<LogitBias> SamplingParams::*>;

struct SamplingField {
  const char* name;   // "top_p"
  const char* group;  // what it is about, for people
  SamplingMember member;
  const char* help;
};

std::span<const SamplingField> sampling_fields();  // group by group
const SamplingField* find_sampling_field(std::string_view name);

// A value as people type it: 0.2, true, "1,2,3" for token ids, "15:-100,16:2.5" for biases; a list
// of strings takes one element per value. An error names the field and what it takes.
Status set_sampling_field(SamplingParams& params, const SamplingField& field,
                          std::span<const std::string> values);
std::string sampling_field_text(const SamplingParams& params, const SamplingField& field);

void copy_sampling_field(const SamplingParams& from, const SamplingField& field,
                         SamplingParams& to);

}  // namespace tinyvllm
