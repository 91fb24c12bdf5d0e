// tinyvllm bench files: how long a model file with a big vocabulary takes to open and what it costs
// in memory, beside the Python reader of the same format; and what advice to the kernel gives to
// reading a map. Files are written to the temporary folder and removed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <malloc.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "apps/bench.h"
#include "base/json_writer.h"
#include "io/mapped_file.h"
#include "io/model_files.h"
#include "tests/io/gguf_builder.h"
#include "tests/io/temp_folder.h"

namespace tinyvllm {
namespace {

constexpr int kTokens = 262'144;
constexpr double kOpenLimitMs = 150;
constexpr double kMemoryLimitMb = 60;
constexpr size_t kTensorBytes = size_t{128} << 20;  // per-file data for reading through the map

struct FilesFlags {
  int samples = 15;
  std::string python = ".venv/bin/python";
  bool json = false;
};

struct Row {
  std::string name;
  const char* unit;
  double limit;                 // 0: none
  std::vector<double> samples;  // ascending
  double median() const { return samples.empty() ? 0 : samples[samples.size() / 2]; }
};

template <class Work>
double milliseconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

Row make_row(std::string name, const char* unit, double limit, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {std::move(name), unit, limit, std::move(samples)};
}

// A vocabulary as large as the largest in use, with everything a file can say about its tokens.
std::string big_vocabulary() {
  std::vector<std::string> tokens, merges;
  std::vector<float> scores;
  std::vector<int32_t> types;
  for (int i = 0; i < kTokens; ++i) {
    tokens.push_back(str_cat("\xE2\x96\x81token", i));
    merges.push_back(str_cat("\xC4\xA0t", i, " ok", i));
    scores.push_back(-static_cast<float>(i));
    types.push_back(GgufVocabulary::kNormal);
  }
  GgufBuilder file;
  file.text("general.architecture", "llama").u32("llama.block_count", 32);
  file.text("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", tokens);
  file.array("tokenizer.ggml.scores", GgufType::kF32, scores);
  file.array("tokenizer.ggml.token_type", GgufType::kI32, types);
  file.strings("tokenizer.ggml.merges", merges).u32("tokenizer.ggml.bos_token_id", 1);
  for (int i = 0; i < 320; ++i) {
    file.tensor(str_cat("blk.", i, ".attn_q.weight"), {32, 4}, DType::kF16, 256);
  }
  return file.build();
}

// Private memory of the process: maps of files do not count.
double private_mb() {
  ::malloc_trim(0);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stod(line.substr(8)) * 1024 / 1e6;
  }
  return 0;
}

Status bench_open(const std::string& path, int samples, std::vector<Row>& rows) {
  std::vector<double> times;
  const double before = private_mb();
  double memory = 0;
  for (int i = 0; i < samples; ++i) {
    std::unique_ptr<ModelFiles> files;
    Status status;
    times.push_back(milliseconds([&] {
      Result<std::unique_ptr<ModelFiles>> opened = ModelFiles::open(path);
      if (opened.ok()) {
        files = std::move(opened).value();
      } else {
        status = opened.error();
      }
    }));
    if (!status.ok()) return status;
    if (i == 0) memory = private_mb() - before;
  }
  rows.push_back(make_row("open, 262,144 tokens", "ms", kOpenLimitMs, times));
  rows.push_back(make_row("memory beyond the map", "MB", kMemoryLimitMb, {memory}));
  return Status();
}

// The same file through the Python package, timed inside Python so that its start does not count.
// Once: it takes tens of seconds.
void bench_python(const std::string& path, const FilesFlags& flags, std::vector<Row>& rows) {
  const std::string script =
      str_cat("import time, gguf; t = time.perf_counter(); gguf.GGUFReader(\"", path,
              "\"); print((time.perf_counter() - t) * 1e3)");
  const std::string command = str_cat("'", flags.python, "' -c '", script, "' 2>/dev/null");
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return;
  double time = 0;
  const bool read = std::fscanf(pipe, "%lf", &time) == 1;
  ::pclose(pipe);
  if (read) rows.push_back(make_row("the same, Python gguf", "ms", 0, {time}));
}

struct Advice {
  const char* name;
  int advice;  // for madvise, −1 for none
};
constexpr Advice kAdvices[] = {
    {"no advice", -1}, {"readahead", MADV_WILLNEED}, {"huge pages", MADV_HUGEPAGE}};

uint64_t read_all(std::string_view bytes) {
  uint64_t sum = 0, word = 0;
  for (size_t at = 0; at + sizeof word <= bytes.size(); at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    sum += word;
  }
  return sum;
}

void drop_from_cache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

// Cold: not in the page cache. Warm: there already, but mapped anew. The advices take turns, so
// that a busy moment of the machine hits all alike.
Status bench_advice(const std::string& path, int samples, std::vector<Row>& rows) {
  std::vector<double> cold[std::size(kAdvices)], warm[std::size(kAdvices)];
  volatile uint64_t sink = 0;
  for (int i = 0; i < samples; ++i) {
    for (size_t a = 0; a < std::size(kAdvices); ++a) {
      drop_from_cache(path);
      for (std::vector<double>* times : {&cold[a], &warm[a]}) {
        TRY_ASSIGN(const std::unique_ptr<MappedFile> file, MappedFile::open(path));
        void* data = const_cast<char*>(file->bytes().data());
        if (kAdvices[a].advice >= 0) (void)::madvise(data, file->size(), kAdvices[a].advice);
        times->push_back(milliseconds([&] { sink = sink + read_all(file->bytes()); }));
      }
    }
  }
  for (size_t a = 0; a < std::size(kAdvices); ++a) {
    const std::string name = kAdvices[a].name;
    rows.push_back(make_row("read 134 MB cold, " + name, "ms", 0, cold[a]));
    rows.push_back(make_row("read 134 MB warm, " + name, "ms", 0, warm[a]));
  }
  return Status();
}

void print_table(const std::vector<Row>& rows) {
  std::printf("%-32s %10s %10s %10s   %s\n", "", "best", "median", "limit", "unit");
  for (const Row& row : rows) {
    char limit[16] = "";
    if (row.limit > 0) std::snprintf(limit, sizeof limit, "%.0f", row.limit);
    std::printf("%-32s %10.1f %10.1f %10s   %s\n", row.name.c_str(), row.samples.front(),
                row.median(), limit, row.unit);
  }
}

void print_json(const std::vector<Row>& rows) {
  JsonWriter json;
  json.begin_object().key("machine").begin_object();
  json.field("threads", std::thread::hardware_concurrency()).end_object();
  json.key("results").begin_array();
  for (const Row& row : rows) {
    json.begin_object().field("name", row.name).field("value", row.median());
    json.field("unit", row.unit).key("limit");
    row.limit > 0 ? json.value(row.limit) : json.null();
    json.key("utilization");
    row.limit > 0 ? json.value(row.median() / row.limit) : json.null();
    json.field("samples", row.samples).end_object();
  }
  std::printf("%s\n", json.end_array().end_object().str().c_str());
}

Status bench_files(const FilesFlags& flags) {
  const TempFolder folder;
  std::vector<Row> rows;
  const std::string path = folder.write("vocabulary.gguf", big_vocabulary());
  TRY(bench_open(path, flags.samples, rows));
  bench_python(path, flags, rows);
  std::string data(kTensorBytes, '\0');
  for (size_t i = 0; i < data.size(); i += 64) data[i] = static_cast<char>(i >> 6);
  const std::string big = folder.write("data.bin", data);
  TRY(bench_advice(big, std::max(3, flags.samples / 2), rows));
  if (flags.json) {
    print_json(rows);
  } else {
    print_table(rows);
  }
  return Status();
}

}  // namespace

void add_bench_files(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand("files", "Open a model file with a big vocabulary");
  const auto flags = std::make_shared<FilesFlags>();
  command->add_option("--samples", flags->samples, "times each thing is measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--python", flags->python, "an interpreter that has the gguf package")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer("Example:\n  tinyvllm bench files --samples 30");
  command->callback([flags, &action] { action = [flags] { return bench_files(*flags); }; });
}

}  // namespace tinyvllm
