#include "model/rope_config.h"

#include "model/binder.h"
#include "ops/rope_scaling.h"

namespace tinyvllm {
namespace {

using Scaling = RopeConfig::Scaling;

constexpr char kKnown[] = "known are default, linear, llama3, yarn and longrope";

Result<Scaling> scaling_named(const std::string& key, std::string_view name) {
  if (name == "default" || name == "none") return Scaling::kNone;
  if (name == "linear") return Scaling::kLinear;
  if (name == "llama3") return Scaling::kLlama3;
  if (name == "yarn") return Scaling::kYarn;
  if (name == "longrope" || name == "su") return Scaling::kLongrope;
  if (name == "dynamic") {
    return error(key, ": 'dynamic' is not supported, because its angles change with the length of ",
                 "the text; ", kKnown);
  }
  return error(key, ": rope scaling '", printable(name), "' is not supported; ", kKnown);
}

Result<std::vector<float>> factors(const Metadata& metadata, const std::string& key) {
  TRY_ASSIGN(const std::vector<double> numbers, metadata.numbers(key));
  for (const double number : numbers) {
    if (!(number > 0)) return error(key, ": expected positive factors, found ", number);
  }
  return std::vector<float>(numbers.begin(), numbers.end());
}

// How much longer rotated vectors become, where the file says so itself.
Status read_magnitude(const ConfigReader& reader, const std::string& at, RopeConfig& rope) {
  const std::string given = at + "attention_factor";
  const std::string mscale = at + "mscale";
  const std::string all = at + "mscale_all_dim";
  if (reader.metadata().has(given)) {
    TRY_ASSIGN(rope.magnitude, reader.positive({"", given.c_str()}, 1));
  } else if (rope.scaling == Scaling::kYarn && reader.metadata().has(mscale) &&
             reader.metadata().has(all)) {
    TRY_ASSIGN(const double numerator, reader.positive({"", mscale.c_str()}, 1));
    TRY_ASSIGN(const double denominator, reader.positive({"", all.c_str()}, 1));
    rope.magnitude =
        ops::yarn_magnitude(rope.factor, numerator) / ops::yarn_magnitude(rope.factor, denominator);
  }
  return Status();
}

Status read_hf(const ConfigReader& reader, int64_t length, RopeConfig& rope) {
  const Metadata& metadata = reader.metadata();
  // transformers 5 keeps everything in rope_parameters (per kind of layer, where they differ);
  // before, rope_theta stood alone and rope_scaling was there when there was any.
  std::string at = "rope_scaling.";
  if (metadata.has("rope_parameters.rope_theta")) at = "rope_parameters.";
  if (metadata.has("rope_parameters.full_attention.rope_theta")) {
    at = "rope_parameters.full_attention.";
  }
  const auto positive = [&](const char* name, double fallback) {
    return reader.positive({"", (at + name).c_str()}, fallback);
  };
  TRY_ASSIGN(const double theta, reader.positive({"", "rope_theta"}, rope.base));
  TRY_ASSIGN(rope.base, positive("rope_theta", theta));
  const std::string type = metadata.has(at + "rope_type") ? at + "rope_type" : at + "type";
  TRY_ASSIGN(const std::string_view name, metadata.string_or(type, "default"));
  TRY_ASSIGN(rope.scaling, scaling_named(type, name));
  if (rope.scaling == Scaling::kNone) return Status();

  const char* original = "original_max_position_embeddings";
  const std::string key = metadata.has(original) ? original : at + original;
  TRY_ASSIGN(rope.original_length, reader.size({"", key.c_str()}, rope.original_length));
  if (rope.scaling == Scaling::kLongrope) {
    TRY_ASSIGN(rope.short_factors, factors(metadata, at + "short_factor"));
    TRY_ASSIGN(rope.long_factors, factors(metadata, at + "long_factor"));
    rope.factor = static_cast<double>(length) / static_cast<double>(rope.original_length);
  } else if (!metadata.has(at + "factor")) {
    return error("key '", at, "factor' is missing; expected a number");
  }
  TRY_ASSIGN(rope.factor, positive("factor", rope.factor));
  TRY(read_magnitude(reader, at, rope));
  TRY_ASSIGN(rope.low_freq_factor, positive("low_freq_factor", rope.low_freq_factor));
  TRY_ASSIGN(rope.high_freq_factor, positive("high_freq_factor", rope.high_freq_factor));
  TRY_ASSIGN(rope.beta_fast, positive("beta_fast", rope.beta_fast));
  TRY_ASSIGN(rope.beta_slow, positive("beta_slow", rope.beta_slow));
  TRY_ASSIGN(rope.truncate, metadata.boolean_or(at + "truncate", true));
  return Status();
}

// llama3's and longrope's factors are tensors of the file: the binder has them.
Status read_gguf(const ConfigReader& reader, RopeConfig& rope) {
  TRY_ASSIGN(rope.base, reader.positive({"rope.freq_base", ""}, rope.base));
  const std::string type = reader.key({"rope.scaling.type", ""});
  // Files that are older than the type have a factor alone, and mean linear.
  TRY_ASSIGN(const std::string_view name, reader.metadata().string_or(type, "linear"));
  TRY_ASSIGN(rope.scaling, scaling_named(type, name));
  TRY_ASSIGN(rope.factor, reader.positive({"rope.scale_linear", ""}, 1));
  TRY_ASSIGN(rope.factor, reader.positive({"rope.scaling.factor", ""}, rope.factor));
  TRY_ASSIGN(rope.original_length,
             reader.size({"rope.scaling.original_context_length", ""}, rope.original_length));
  TRY_ASSIGN(rope.beta_fast, reader.positive({"rope.scaling.yarn_beta_fast", ""}, 32));
  TRY_ASSIGN(rope.beta_slow, reader.positive({"rope.scaling.yarn_beta_slow", ""}, 1));
  if (reader.has({"rope.scaling.yarn_attn_factor", ""})) {
    TRY_ASSIGN(rope.magnitude, reader.positive({"rope.scaling.yarn_attn_factor", ""}, 1));
  }
  TRY_ASSIGN(rope.extra_magnitude, reader.positive({"rope.scaling.attn_factor", ""}, 1));
  if (rope.scaling == Scaling::kLinear && rope.factor == 1) rope.scaling = Scaling::kNone;
  return Status();
}

}  // namespace

Result<RopeConfig> read_rope_config(const ConfigReader& reader, int64_t length) {
  RopeConfig rope;
  rope.original_length = length;
  TRY(reader.is_gguf() ? read_gguf(reader, rope) : read_hf(reader, length, rope));
  if (rope.scaling == Scaling::kLlama3 && rope.high_freq_factor <= rope.low_freq_factor) {
    return error("rope scaling llama3: high_freq_factor ", rope.high_freq_factor,
                 " must be above low_freq_factor ", rope.low_freq_factor);
  }
  if (rope.scaling == Scaling::kYarn && rope.base <= 1) {
    return error("rope scaling yarn: expected a base over 1, found ", rope.base);
  }
  return rope;
}

}  // namespace tinyvllm
