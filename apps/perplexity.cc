// tinyvllm perplexity MODEL FILE: how surprised a model is by a text. Windows and what is scored in
// them are llama.cpp's: the text is cut into windows of --ctx tokens, each starts anew (with BOS in
// place of its first token, where the model has one), and the second half of each counts.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <unistd.h>

#include "apps/command.h"
#include "apps/device_flags.h"
#include "base/json_writer.h"
#include "engine/kv_sizing.h"
#include "engine/scorer.h"
#include "io/model_files.h"
#include "model/registry.h"
#include "text/tokenizer.h"

namespace tinyvllm {
namespace {

struct PerplexityFlags {
  std::string model;
  std::string file;
  int ctx = 512;
  int windows = 0;
  std::string kv_cache_dtype = "f16";
  DeviceFlags device;
  bool json = false;
};

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return error("cannot read '", printable(path), "'");
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return error("cannot read '", printable(path), "'");
  return text;
}

// The token that the model's files want before every text.
std::optional<int32_t> begin_token(const Tokenizer& tokenizer) {
  const std::vector<int32_t> with = tokenizer.encode("a", {true, false});
  const std::vector<int32_t> without = tokenizer.encode("a", {false, false});
  if (with.size() <= without.size() || with.front() == without.front()) return std::nullopt;
  return with.front();
}

// Mean and spread of −log p over the tokens scored so far.
struct Tally {
  int64_t tokens = 0;
  int windows = 0;
  double sum = 0;
  double squares = 0;

  void add(const std::vector<TokenScore>& scores) {
    for (const TokenScore& score : scores) {
      sum -= score.logprob;
      squares += static_cast<double>(score.logprob) * score.logprob;
    }
    tokens += static_cast<int64_t>(scores.size());
    windows += 1;
  }
  double perplexity() const { return std::exp(sum / static_cast<double>(tokens)); }
  double error() const {  // one standard deviation of the perplexity
    const auto n = static_cast<double>(tokens);
    const double variance = squares / n - sum / n * sum / n;
    return variance > 0 && n > 1 ? perplexity() * std::sqrt(variance / (n - 1)) : 0;
  }
};

void print(const PerplexityFlags& flags, const Tally& tally, double seconds) {
  const double fed = static_cast<double>(tally.windows) * flags.ctx;
  if (!flags.json) {
    std::printf("perplexity %.4f ± %.4f  (%lld tokens in %d windows of %d)\n", tally.perplexity(),
                tally.error(), static_cast<long long>(tally.tokens), tally.windows, flags.ctx);
    std::fprintf(stderr, "%.1f s, %.0f tok/s\n", seconds, fed / seconds);
    return;
  }
  JsonWriter json;
  json.begin_object().field("perplexity", tally.perplexity()).field("tokens", tally.tokens);
  json.field("windows", tally.windows).field("error", tally.error()).field("ctx", flags.ctx);
  json.field("seconds", seconds).field("tok_s", fed / seconds).end_object();
  std::printf("%s\n", json.str().c_str());
}

Status perplexity(const PerplexityFlags& flags) {
  TRY_ASSIGN(const std::string path, resolve_model(flags.model));
  TRY_ASSIGN(const DType cache, kv_cache_dtype(flags.kv_cache_dtype));
  TRY_ASSIGN(const std::string text, read_text(flags.file));
  TRY_ASSIGN(const std::unique_ptr<ModelFiles> files, ModelFiles::open(path));
  TRY_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::create(files->tokenizer()));
  TRY_ASSIGN(const std::unique_ptr<Runtime> runtime, create_runtime(flags.device));
  TRY_ASSIGN(const std::unique_ptr<Model> model,
             load_model(*files, runtime->device(), runtime->pool(), {flags.ctx, cache}));
  if (flags.ctx > model->info().context_length) {
    return error("--ctx: expected 4 to ", model->info().context_length,
                 " (the model's context), found ", flags.ctx);
  }
  std::vector<int32_t> tokens = tokenizer->encode(text, {true, false});
  int windows = static_cast<int>(tokens.size() / static_cast<size_t>(flags.ctx));
  if (windows == 0) {
    return error("'", printable(flags.file), "' has ", tokens.size(),
                 " tokens; expected at least one window of ", flags.ctx);
  }
  if (flags.windows > 0) windows = std::min(windows, flags.windows);

  watch_interrupts();
  const auto start = std::chrono::steady_clock::now();
  const bool progress = isatty(STDERR_FILENO) == 1;
  const std::optional<int32_t> begin = begin_token(*tokenizer);
  TRY_ASSIGN(const std::unique_ptr<Scorer> scorer, Scorer::create(*runtime, *model, flags.ctx));
  Tally tally;
  while (tally.windows < windows && !interrupted()) {
    const std::span<int32_t> window(tokens.data() + int64_t{tally.windows} * flags.ctx,
                                    static_cast<size_t>(flags.ctx));
    if (begin) window.front() = *begin;
    TRY_ASSIGN(const std::vector<TokenScore> scores, scorer->score(window, flags.ctx / 2 + 1));
    tally.add(scores);
    if (progress) {
      std::fprintf(stderr, "\r%d/%d windows, %.4f ", tally.windows, windows, tally.perplexity());
    }
  }
  if (progress) std::fprintf(stderr, "\r\033[K");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (tally.windows > 0) print(flags, tally, taken.count());
  return Status();
}

}  // namespace

void add_perplexity(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("perplexity", "Score a text");
  const auto flags = std::make_shared<PerplexityFlags>();
  command->add_option("MODEL", flags->model, "a .gguf file, a Hugging Face folder, or an alias")
      ->required();
  command->add_option("FILE", flags->file, "a text")->required();
  command->add_option("-c,--ctx", flags->ctx, "tokens per window")
      ->capture_default_str()
      ->check(CLI::Range(4, 1 << 24));
  command->add_option("--windows", flags->windows, "score only so many (default: all)");
  command->add_option("--kv-cache-dtype", flags->kv_cache_dtype, "f16, f32 or int8")
      ->capture_default_str();
  add_device_flags(*command, flags->device);
  command->add_flag("--json", flags->json, "one JSON object instead of a line");
  command->footer("Example:\n  tinyvllm perplexity smollm2 /usr/share/common-licenses/GPL-3");
  command->callback([flags, &action] { action = [flags] { return perplexity(*flags); }; });
}

}  // namespace tinyvllm
