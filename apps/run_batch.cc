#include "apps/run_batch.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <unistd.h>
#include <unordered_map>

#include "apps/command.h"
#include "apps/progress.h"
#include "apps/reply.h"
#include "base/stopwatch.h"

namespace tinyvllm {
namespace {

struct InputSize {
  int64_t lines = 0;
  int64_t prompts = 0;  // lines that are not blank
};

Result<InputSize> measure_input(const std::string& path) {
  TRY_ASSIGN(LineReader reader, LineReader::open(path));
  InputSize size;
  LineReader::Line line;
  for (;;) {
    TRY_ASSIGN(const bool more, reader.next(line));
    if (!more) return size;
    size.lines += 1;
    size.prompts += is_blank(line.text) ? 0 : 1;
  }
}

// Every answer that is already there must be to this input.
Status check_kept(const std::string& prompts, const BatchOutput& output,
                  const std::string& settings) {
  if (output.lines_kept() == 0) return Status();
  TRY_ASSIGN(LineReader reader, LineReader::open(prompts));
  LineReader::Line line;
  for (int64_t index = 0;; ++index) {
    TRY_ASSIGN(const bool more, reader.next(line));
    if (!more) return Status();
    TRY(output.has(index, fingerprint(settings, line.text)));
  }
}

constexpr int64_t kWhole = 1000;

class BatchRun {
 public:
  BatchRun(LLMEngine& engine, BatchFiles& files, const BatchOptions& options)
      : engine_(engine), files_(files), options_(options) {}

  Status run() {
    for (;;) {
      TRY(fill());
      if (pending_.empty() || interrupted()) break;
      const std::vector<RequestOutput> outputs = engine_.step();
      TRY(engine_.health());  // what a device took down with it is asked again another time
      for (const RequestOutput& news : outputs) TRY(receive(news));
      progress_.update(str_cat(static_cast<int64_t>(rate()), " tok/s"), progress(),
                       kWhole * files_.prompts_left);
    }
    progress_.clear();
    return Status();
  }

  void print_summary() const {
    const int64_t left = files_.prompts_left - done_;
    if (options_.json) {
      JsonWriter json;
      json.begin_object().field("answered", done_ - failed_).field("failed", failed_);
      json.field("kept", files_.output.lines_kept()).field("left", left).field("tokens", tokens_);
      json.field("seconds", clock_.seconds()).field("tok_s", rate()).end_object();
      std::printf("%s\n", json.str().c_str());
      return;
    }
    std::fprintf(stderr, "answered %lld prompts, %s tokens, %.1f tok/s",
                 static_cast<long long>(done_ - failed_), group_digits(tokens_).c_str(), rate());
    if (failed_ > 0) std::fprintf(stderr, " | %lld failed", static_cast<long long>(failed_));
    if (files_.output.lines_kept() > 0) {
      std::fprintf(stderr, " | %lld were there",
                   static_cast<long long>(files_.output.lines_kept()));
    }
    if (left > 0) {
      std::fprintf(stderr, " | interrupted, %lld to go: the same command goes on",
                   static_cast<long long>(left));
    }
    std::fprintf(stderr, "\n");
  }

 private:
  struct Pending {
    int64_t index = 0;
    std::string print;
    int64_t most_tokens = 1;  // of all its answers together
    Reply reply;
    Timings timings;
  };

  // In parts of a prompt: those in the works count by how much of their answer is there.
  int64_t progress() const {
    int64_t parts = kWhole * done_;
    for (const auto& [id, pending] : pending_) {
      const auto tokens = static_cast<int64_t>(pending.reply.completion_tokens());
      parts += std::min(kWhole - 1, kWhole * tokens / pending.most_tokens);
    }
    return parts;
  }

  double rate() const { return static_cast<double>(tokens_) / clock_.seconds(); }

  // Hands the engine enough to be busy, and no more: what waits here costs memory.
  Status fill() {
    LineReader::Line line;
    while (!at_end_ && answers_pending_ < 2 * options_.max_num_seqs && !interrupted()) {
      TRY_ASSIGN(const bool more, files_.input.next(line));
      at_end_ = !more;
      if (at_end_) break;
      const int64_t index = next_index_++;
      if (is_blank(line.text)) continue;
      std::string print = fingerprint(files_.settings, line.text);
      TRY_ASSIGN(const bool answered, files_.output.has(index, print));
      if (answered) continue;
      const Status started = start(index, print, line);
      if (!started.ok()) TRY(fail(index, print, started.message()));
    }
    return Status();
  }

  Status start(int64_t index, const std::string& print, const LineReader::Line& line) {
    if (line.too_long) {
      return error("the line is longer than ", human_bytes(LineReader::kLongestLine));
    }
    TRY_ASSIGN(const BatchLine parsed, parse_batch_line(line.text, options_.defaults));
    Pending pending{index, print, most_tokens(parsed.sampling), {}, {}};
    TRY_ASSIGN(pending.reply.prompt_ids, options_.encode(parsed));
    pending.reply.expect(parsed.sampling);
    TRY_ASSIGN(const RequestId id, engine_.add_request(pending.reply.prompt_ids, parsed.sampling));
    answers_pending_ += parsed.sampling.n;
    pending_.emplace(id, std::move(pending));
    return Status();
  }

  int64_t most_tokens(const SamplingParams& sampling) const {
    return int64_t{std::min(sampling.max_tokens, engine_.max_model_len())} * sampling.n;
  }

  Status receive(const RequestOutput& news) {
    const auto found = pending_.find(news.request);
    if (found == pending_.end()) return Status();
    Pending& pending = found->second;
    pending.reply.add(news);
    pending.timings = news.timings;
    tokens_ += static_cast<int64_t>(news.tokens.size());
    if (news.error.empty() && !pending.reply.finished()) return Status();
    const Pending done = std::move(pending);
    pending_.erase(found);
    answers_pending_ -= static_cast<int>(done.reply.answers.size());
    if (news.error.empty()) return finish(done);
    engine_.abort(news.request);  // its other answers, if it has any
    return fail(done.index, done.print, news.error);
  }

  Status finish(Pending done) {
    const double seconds = done.timings.total_s - done.timings.ttft_s;
    const auto tokens = static_cast<double>(done.reply.completion_tokens());
    const auto answers = static_cast<double>(done.reply.answers.size());
    if (seconds > 0) done.reply.decode_tok_s = (tokens - answers) / seconds;
    JsonWriter json;
    json.begin_object().field("index", done.index).field("input", done.print);
    write_reply(json, done.reply);
    done_ += 1;
    return files_.output.append(json.end_object().str());
  }

  Status fail(int64_t index, const std::string& print, const std::string& problem) {
    JsonWriter json;
    json.begin_object().field("index", index).field("input", print).field("error", problem);
    done_ += 1;
    failed_ += 1;
    return files_.output.append(json.end_object().str());
  }

  LLMEngine& engine_;
  BatchFiles& files_;
  const BatchOptions& options_;
  ProgressBar progress_{"prompts"};
  const Stopwatch clock_;
  std::unordered_map<RequestId, Pending> pending_;
  int answers_pending_ = 0;
  int64_t next_index_ = 0;
  bool at_end_ = false;
  int64_t done_ = 0;
  int64_t failed_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace

Result<BatchFiles> open_batch(const std::string& prompts, const std::string& output_path,
                              const std::string& settings) {
  std::error_code unknown;
  if (std::filesystem::exists(prompts) && !std::filesystem::is_regular_file(prompts, unknown)) {
    return error("--prompts: '", printable(prompts, 4096), "' is no regular file");
  }
  if (std::filesystem::equivalent(prompts, output_path, unknown)) {
    return error("--output: '", printable(output_path, 4096), "' is the input itself");
  }
  TRY_ASSIGN(const InputSize size, measure_input(prompts));
  TRY_ASSIGN(BatchOutput output, BatchOutput::open(output_path, size.lines));
  TRY(check_kept(prompts, output, settings));
  TRY_ASSIGN(LineReader input, LineReader::open(prompts));
  const int64_t left = size.prompts - output.lines_kept();
  return BatchFiles{std::move(input), std::move(output), settings, left};
}

Status run_batch(LLMEngine& engine, BatchFiles files, const BatchOptions& options) {
  BatchRun batch(engine, files, options);
  TRY(batch.run());
  batch.print_summary();
  return Status();
}

}  // namespace tinyvllm
