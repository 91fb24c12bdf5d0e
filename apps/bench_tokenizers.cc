// The part of `tinyvllm bench text` that measures tokenizers: texts as people write them beside the
// package `tokenizers`, texts that make careless merging quadratic at two sizes, and loading.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>

#include "apps/bench_text.h"
#include "apps/command.h"
#include "apps/sample_text.h"
#include "apps/text_input.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temp_folder.h"

namespace tinyvllm {
namespace {

constexpr size_t kTextBytes = 1'000'000;
constexpr size_t kLonger = 4;        // times as long, to see how the time grows
constexpr double kWantedRatio = 3;   // against the package, on English, Chinese and code
constexpr double kWantedGrowth = 6;  // 4 is linear, 16 is quadratic
constexpr int kBigVocabulary = 262'144;
constexpr double kBigVocabularyMs = 150;
constexpr double kQwenMs = 120;

struct Text {
  const char* name;
  std::string bytes;
  std::string longer;  // the same kind of text, kLonger times as long; empty: not measured
};

std::string sample_letters(size_t bytes) {
  std::string text = sample_english(bytes * 5 / 4);
  std::erase_if(text, [](char c) { return c < 'A'; });
  text.resize(bytes);
  return text;
}

std::vector<Text> make_texts() {
  constexpr size_t kLong = kTextBytes * kLonger;
  return {{"English", sample_english(kTextBytes), ""},
          {"Chinese", sample_chinese(kTextBytes), ""},
          {"code", sample_code(kTextBytes), ""},
          {"one letter", std::string(kTextBytes, 'a'), std::string(kLong, 'a')},
          {"spaces", std::string(kTextBytes, ' '), std::string(kLong, ' ')},
          {"no spaces", sample_letters(kTextBytes), sample_letters(kLong)}};
}

// Ascending.
std::vector<double> seconds_of(int samples, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    const double start = thread_seconds();
    work();
    times.push_back(thread_seconds() - start);
  }
  std::sort(times.begin(), times.end());
  return times;
}

// The package's side: loads the tokenizer and encodes each text as often as we do; one best time a
// line, in seconds.
constexpr const char* kScript = R"(
import sys, time
from tokenizers import Tokenizer
def best(work):
    times = []
    for _ in range(int(sys.argv[2])):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)
path = sys.argv[1]
print(best(lambda: Tokenizer.from_file(path)), flush=True)
tokenizer = Tokenizer.from_file(path)
for name in sys.argv[3:]:
    text = open(name, newline='').read()
    print(best(lambda: tokenizer.encode(text, add_special_tokens=False)), flush=True)
)";

// Nothing where there is no such package, or no tokenizer.json for it to read.
std::vector<double> package_seconds(const TextFlags& flags, const std::string& model,
                                    const std::vector<Text>& texts, const TempFolder& folder) {
  const std::string path = model + "/tokenizer.json";
  if (!std::filesystem::exists(path)) return {};
  std::string command = str_cat("TOKENIZERS_PARALLELISM=false '", flags.python, "' '",
                                folder.path("script.py"), "' '", path, "' ", flags.samples);
  for (const Text& text : texts) command += str_cat(" '", folder.path(text.name), "'");
  std::FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return {};
  std::vector<double> times;
  for (double time = 0; std::fscanf(pipe, "%lf", &time) == 1;) times.push_back(time);
  ::pclose(pipe);
  return times;
}

// From the file's name to a tokenizer ready for use.
Result<TextRow> bench_load(const TextFlags& flags, const std::string& path, TextRow row) {
  Status status;
  row.unit = "ms";
  row.samples = seconds_of(flags.samples, [&] {
    const auto opened = open_tokenizer(path);
    if (!opened.ok()) status = opened.error();
  });
  for (double& sample : row.samples) sample *= 1e3;
  TRY(status);
  return row;
}

Status bench_model(const TextFlags& flags, const std::string& model, const TempFolder& folder,
                   const std::vector<Text>& texts, std::vector<TextRow>& rows) {
  TRY_ASSIGN(const std::string path, resolve_model(model));
  const std::string name = std::filesystem::path(path).filename().string();
  const std::vector<double> package = package_seconds(flags, path, texts, folder);
  const std::string peer = package.size() > texts.size() ? "tokenizers" : "";

  TextRow load{.subject = name, .name = "load", .peer = peer};
  load.limit = name == "qwen2_5" ? kQwenMs : 0;
  if (!peer.empty()) load.peer_value = package[0] * 1e3;
  TRY_ASSIGN(load, bench_load(flags, path, std::move(load)));
  rows.push_back(std::move(load));

  TRY_ASSIGN(const OpenedTokenizer opened, open_tokenizer(path));
  const auto times_of = [&](const std::string& text) {
    return seconds_of(flags.samples,
                      [&] { (void)opened.tokenizer->encode(text, {.add_special = false}); });
  };
  for (size_t i = 0; i < texts.size(); ++i) {
    const Text& text = texts[i];
    const double megabytes = static_cast<double>(text.bytes.size()) / 1e6;
    TextRow row{.subject = name, .name = text.name, .unit = "MB/s", .peer = peer};
    row.samples = times_of(text.bytes);
    const double time = row.best();
    for (double& sample : row.samples) sample = megabytes / sample;
    if (!peer.empty()) row.peer_value = megabytes / package[i + 1];
    if (!peer.empty() && text.longer.empty()) row.wanted_ratio = kWantedRatio;
    rows.push_back(std::move(row));
    if (text.longer.empty()) continue;
    TextRow growth{.subject = name,
                   .name = str_cat(text.name, ", ", kLonger, " times"),
                   .unit = "x",
                   .samples = times_of(text.longer),
                   .limit = kWantedGrowth};
    for (double& sample : growth.samples) sample /= time;
    rows.push_back(std::move(growth));
  }
  return Status();
}

// A vocabulary as large as the largest in use, every token of which merges from two others.
std::string big_vocabulary(std::string_view model) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"}, merges;
  std::vector<int32_t> types = {2, 3, 3};
  for (char c = '!'; c <= '~'; ++c) tokens.emplace_back(1, c);
  const size_t letters = tokens.size() - 3;
  for (size_t left = 3; tokens.size() < kBigVocabulary; ++left) {
    for (size_t right = 3; right < 3 + letters && tokens.size() < kBigVocabulary; ++right) {
      merges.push_back(tokens[left] + " " + tokens[right]);
      tokens.push_back(tokens[left] + tokens[right]);
    }
  }
  types.resize(tokens.size(), GgufVocabulary::kNormal);
  std::vector<float> scores;
  for (size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<float>(i));
  GgufBuilder file;
  file.text("general.architecture", "llama").text("tokenizer.ggml.model", model);
  file.strings("tokenizer.ggml.tokens", tokens);
  file.array("tokenizer.ggml.token_type", GgufType::kI32, types);
  file.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  if (model == "gpt2") {
    file.text("tokenizer.ggml.pre", "gpt-2").strings("tokenizer.ggml.merges", merges);
  } else {
    file.array("tokenizer.ggml.scores", GgufType::kF32, scores);
  }
  return file.build();
}

// The tokenizers that the tests carry, unpacked.
std::vector<std::string> carried_models(const TempFolder& folder) {
  std::vector<std::string> models;
  for (const char* name : {"qwen2_5", "llama2"}) {
    const std::string target = folder.path(name);
    std::filesystem::create_directories(target);
    const std::string command = str_cat("xz -dc 'tests/data/tokenizers/", name,
                                        "/tokenizer.json.xz' > '", target, "/tokenizer.json'");
    if (std::system(command.c_str()) == 0) models.push_back(target);
  }
  return models;
}

}  // namespace

Status bench_tokenizers(const TextFlags& flags, std::vector<TextRow>& rows) {
  const TempFolder folder;
  folder.write("script.py", kScript);
  const std::vector<Text> texts = make_texts();
  for (const Text& text : texts) folder.write(text.name, text.bytes);
  std::vector<std::string> models = flags.models;
  if (models.empty()) models = carried_models(folder);
  for (const std::string& model : models) TRY(bench_model(flags, model, folder, texts, rows));
  for (const char* model : {"gpt2", "llama"}) {
    const std::string path = folder.write("big.gguf", big_vocabulary(model));
    TextRow row{.subject = str_cat("GGUF ", model), .name = "load 262,144 tokens"};
    row.limit = kBigVocabularyMs;
    TRY_ASSIGN(row, bench_load(flags, path, std::move(row)));
    rows.push_back(std::move(row));
  }
  return Status();
}

}  // namespace tinyvllm
