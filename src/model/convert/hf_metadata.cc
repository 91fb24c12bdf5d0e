#include "model/convert/hf_metadata.h"

#include <filesystem>

#include "ops/rope_scaling.h"

namespace tinyvllm {
namespace {

using Scaling = RopeConfig::Scaling;

class MetadataWriter {
 public:
  MetadataWriter(GgufPairs& pairs, const Architecture& architecture)
      : pairs_(pairs), prefix_(std::string(architecture.gguf_name) + ".") {}

  void size(const char* key, int64_t value) {
    pairs_.u32(prefix_ + key, static_cast<uint32_t>(value));
  }
  void number(const char* key, double value) {
    pairs_.f32(prefix_ + key, static_cast<float>(value));
  }
  void text(const char* key, std::string_view value) { pairs_.text(prefix_ + key, value); }

  void fact(const ModelListing::Fact& fact) {
    if (const auto* value = std::get_if<int64_t>(&fact.value)) {
      if (*value != 0) size(fact.key.c_str(), *value);  // no window, no key
    } else if (const auto* number_value = std::get_if<double>(&fact.value)) {
      number(fact.key.c_str(), *number_value);
    } else {
      pairs_.flag(prefix_ + fact.key, std::get<bool>(fact.value));
    }
  }

 private:
  GgufPairs& pairs_;
  const std::string prefix_;
};

// By how much each pair turns slower than without scaling.
std::vector<float> llama3_factors(const DecoderConfig& c) {
  const ops::Rope plain = ops::make_rope(ops::RopePairing::kHalves, static_cast<int>(c.head_dim),
                                         static_cast<int>(c.rotary_dim), c.rope.base);
  ops::Rope scaled = plain;
  ops::scale_rope_llama3(scaled, {c.rope.factor, c.rope.low_freq_factor, c.rope.high_freq_factor,
                                  c.rope.original_length});
  std::vector<float> factors;
  for (size_t i = 0; i < plain.frequencies.size(); ++i) {
    factors.push_back(plain.frequencies[i] / scaled.frequencies[i]);
  }
  return factors;
}

Status write_rope(const DecoderConfig& c, MetadataWriter& writer, HfDescription& model) {
  const RopeConfig& rope = c.rope;
  writer.size("rope.dimension_count", c.rotary_dim);
  writer.number("rope.freq_base", rope.base);
  switch (rope.scaling) {
    case Scaling::kNone:
      break;
    case Scaling::kLinear:
      writer.text("rope.scaling.type", "linear");
      writer.number("rope.scaling.factor", rope.factor);
      break;
    case Scaling::kLlama3:
      model.tables.push_back({"rope_freqs.weight", llama3_factors(c)});
      break;
    case Scaling::kYarn:
      if (!rope.truncate) {
        return error("rope scaling yarn: GGUF files have no key for 'truncate': false");
      }
      writer.text("rope.scaling.type", "yarn");
      writer.number("rope.scaling.factor", rope.factor);
      writer.size("rope.scaling.original_context_length", rope.original_length);
      writer.number("rope.scaling.yarn_beta_fast", rope.beta_fast);
      writer.number("rope.scaling.yarn_beta_slow", rope.beta_slow);
      if (rope.magnitude) writer.number("rope.scaling.yarn_attn_factor", *rope.magnitude);
      break;
    case Scaling::kLongrope:
      writer.size("rope.scaling.original_context_length", rope.original_length);
      writer.number("rope.scaling.attn_factor", rope.magnitude.value_or(ops::longrope_magnitude(
                                                    rope.factor, rope.original_length)));
      model.tables.push_back({"rope_factors_long.weight", rope.long_factors});
      model.tables.push_back({"rope_factors_short.weight", rope.short_factors});
      break;
  }
  return Status();
}

// config.json may list every layer's kind of attention; GGUF's readers know periods.
Status write_window_pattern(const Metadata& config, MetadataWriter& writer) {
  if (!config.has("layer_types") || !config.has("sliding_window")) return Status();
  TRY_ASSIGN(const std::vector<std::string_view> kinds, config.strings("layer_types"));
  const auto is_full = [](std::string_view kind) { return kind == "full_attention"; };
  const auto first = std::find_if(kinds.begin(), kinds.end(), is_full);
  const auto period = static_cast<size_t>(first - kinds.begin()) + 1;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (is_full(kinds[i]) != ((i + 1) % period == 0)) {
      return error("layer_types: layer ", i, " does not follow the period of ", period,
                   " that the layers before it do, and GGUF files can only state a period");
    }
  }
  if (period > 1) writer.size("attention.sliding_window_pattern", static_cast<int64_t>(period));
  return Status();
}

std::string model_name(const ModelFiles& files) {
  std::filesystem::path path(files.path());
  if (!path.has_filename()) path = path.parent_path();  // "folder/"
  return path.stem().string();
}

}  // namespace

Result<HfDescription> describe_hf(const ModelFiles& files, Device& device, ThreadPool& pool) {
  HfDescription model;
  TRY_ASSIGN(model.architecture, find_architecture(files));
  ModelOptions options;
  options.listing = &model.listing;
  const auto listed = model.architecture->load(files, device, pool, options);
  if (!listed.ok()) return error(printable(files.path(), 4096), ": ", listed.message());
  TRY_ASSIGN(model.config, read_decoder_config(ConfigReader(files), files));

  model.pairs.text("general.architecture", model.architecture->gguf_name);
  model.pairs.text("general.name", model_name(files));
  MetadataWriter writer(model.pairs, *model.architecture);
  for (const ModelListing::Fact& fact : model.listing.facts) writer.fact(fact);
  writer.size("attention.value_length", model.config.head_dim);
  TRY(write_rope(model.config, writer, model));
  TRY(write_window_pattern(files.metadata(), writer));
  return model;
}

}  // namespace tinyvllm
