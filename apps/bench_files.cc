// tinyvllm bench files: how long a model file with a big vocabulary takes to open and what it costs
// in memory, beside the Python reader of the same format; and what advice to the kernel gives to
// reading a map. Files are written to the temporary folder and removed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "apps/bench.h"
#include "apps/bench_report.h"
#include "apps/process_memory.h"
#include "base/stopwatch.h"
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
  OutputFlags out;
};

template <class Work>
double milliseconds(const Work& work) {
  const Stopwatch clock;
  work();
  return 1e3 * clock.seconds();
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
  return process_memory().anonymous / 1e6;
}

Status bench_open(const std::string& path, int samples, BenchReport& report) {
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
  report.result({"open, 262,144 tokens", "ms", times});
  report.result({"memory beyond the map", "MB", {memory}});
  return Status();
}

// The same file through the Python package, timed inside Python so that its start does not count.
// Once: it takes tens of seconds.
void bench_python(const std::string& path, const FilesFlags& flags, BenchReport& report) {
  const std::string script =
      str_cat("import time, gguf; t = time.perf_counter(); gguf.GGUFReader(\"", path,
              "\"); print((time.perf_counter() - t) * 1e3)");
  const std::string command = str_cat("'", flags.python, "' -c '", script, "' 2>/dev/null");
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return;
  double time = 0;
  const bool read = std::fscanf(pipe, "%lf", &time) == 1;
  ::pclose(pipe);
  if (read) report.result({"the same, Python gguf", "ms", {time}});
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
Status bench_advice(const std::string& path, int samples, BenchReport& report) {
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
    report.result({"read 134 MB cold, " + name, "ms", cold[a]});
    report.result({"read 134 MB warm, " + name, "ms", warm[a]});
  }
  return Status();
}

Table make_table(const std::vector<BenchResult>& results) {
  Table table{{{"", Column::kLeft}, {"best"}, {"median"}, {"unit", Column::kLeft}}, {}};
  for (const BenchResult& result : results) {
    const double best = *std::min_element(result.samples.begin(), result.samples.end());
    table.rows.push_back({result.name, decimal(best), decimal(result.value()), result.unit});
  }
  return table;
}

Status bench_files(const FilesFlags& flags) {
  const TempFolder folder;
  BenchReport report("files", flags.out);
  const std::string path = folder.write("vocabulary.gguf", big_vocabulary());
  TRY(bench_open(path, flags.samples, report));
  bench_python(path, flags, report);
  std::string data(kTensorBytes, '\0');
  for (size_t i = 0; i < data.size(); i += 64) data[i] = static_cast<char>(i >> 6);
  const std::string big = folder.write("data.bin", data);
  TRY(bench_advice(big, std::max(3, flags.samples / 2), report));
  const double threads = std::thread::hardware_concurrency();
  report.run().machine = {{"threads", threads}};
  report.run().limits = {{"open_ms", kOpenLimitMs}, {"memory_mb", kMemoryLimitMb}};
  report.add(make_table(report.run().results));
  report.add(Paragraph{str_cat("Wanted: opened in ", kOpenLimitMs, " ms, with no more than ",
                               kMemoryLimitMb, " MB beyond the map.")});
  return report.finish();
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
  add_output_flags(*command, flags->out);
  command->footer("Example:\n  tinyvllm bench files --samples 30");
  command->callback([flags, &action] { action = [flags] { return bench_files(*flags); }; });
}

}  // namespace tinyvllm
