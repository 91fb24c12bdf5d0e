#include "apps/sampling_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "engine/llm_engine.h"

namespace tinyvllm {
namespace {

// "top_p" → "--top-p"; what can be turned off has a --no- form.
std::string flag_names(const SamplingField& field) {
  std::string flag = field.name;
  std::replace(flag.begin(), flag.end(), '_', '-');
  const std::string name = field.name;
  if (name == "max_tokens") return "-n,--" + flag;
  if (name == "skip_special_tokens") return "--" + flag + ",!--no-" + flag;
  return "--" + flag;
}

const char* type_name(const SamplingField& field) {
  struct Names {
    const char* operator()(double SamplingParams::*) const { return "FLOAT"; }
    const char* operator()(int SamplingParams::*) const { return "INT"; }
    const char* operator()(bool SamplingParams::*) const { return ""; }
    const char* operator()(std::optional<int> SamplingParams::*) const { return "INT"; }
    const char* operator()(std::optional<uint64_t> SamplingParams::*) const { return "INT"; }
    const char* operator()(std::vector<std::string> SamplingParams::*) const { return "TEXT"; }
    const char* operator()(std::vector<int32_t> SamplingParams::*) const { return "IDS"; }
    const char* operator()(std::optional<std::vector<int32_t>> SamplingParams::*) const {
      return "IDS";
    }
    const char* operator()(std::vector<LogitBias> SamplingParams::*) const { return "ID:BIAS"; }
  };
  return std::visit(Names(), field.member);
}

bool takes_several(const SamplingField& field) {
  return std::holds_alternative<std::vector<std::string> SamplingParams::*>(field.member);
}

// A flag's texts into its field; text that is no such value is wrong usage.
void accept(SamplingFlags& flags, const SamplingField& field,
            const std::vector<std::string>& texts) {
  const Status status = set_sampling_field(flags.values, field, texts);
  if (!status.ok()) throw CLI::ValidationError(status.message());
  if (!flags.has(field.name)) flags.given.push_back(&field);
}

void add_flag(CLI::App& command, SamplingFlags& flags, const SamplingField& field) {
  const std::string names = flag_names(field);
  CLI::Option* option = nullptr;
  if (std::holds_alternative<bool SamplingParams::*>(field.member)) {
    option = command.add_flag_function(
        names,
        [&flags, &field](int64_t count) { accept(flags, field, {count > 0 ? "true" : "false"}); },
        field.help);
  } else {
    option = command.add_option_function<std::vector<std::string>>(
        names,
        [&flags, &field](const std::vector<std::string>& texts) { accept(flags, field, texts); },
        field.help);
    option->expected(1)->allow_extra_args(false)->type_name(type_name(field));
    option->multi_option_policy(takes_several(field) ? CLI::MultiOptionPolicy::TakeAll
                                                     : CLI::MultiOptionPolicy::TakeLast);
  }
  option->group(field.group);
}

// Flags that mean nothing to greedy decoding.
bool asks_for_sampling(const SamplingFlags& flags) {
  for (const char* name : {"top_k", "top_p", "min_p", "typical_p", "xtc_probability", "n"}) {
    if (flags.has(name)) return true;
  }
  return false;
}

}  // namespace

bool SamplingFlags::has(const char* name) const {
  return std::any_of(given.begin(), given.end(), [&](const SamplingField* field) {
    return std::string_view(field->name) == name;
  });
}

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
  for (const SamplingField& field : sampling_fields()) add_flag(command, flags, field);
}

Result<SamplingParams> sampling_params(const LLMEngine& engine, const SamplingFlags& flags,
                                       double temperature) {
  const GenerationDefaults& model = engine.files().generation_defaults();
  TRY_ASSIGN(SamplingParams params, default_params({model.temperature, model.top_p, model.min_p,
                                                    model.repetition_penalty, model.top_k}));
  if (!model.temperature && !asks_for_sampling(flags)) params.temperature = temperature;
  params.max_tokens = flags.values.max_tokens;
  for (const SamplingField* field : flags.given) copy_sampling_field(flags.values, *field, params);
  return params;
}

}  // namespace tinyvllm
