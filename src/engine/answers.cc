#include "engine/answers.h"

namespace tinyvllm {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void Answers::expect(const PreparedRequest& request) {
  for (const Request& sequence : request.sequences) {
    const SamplingParams& sampling = sequence.sampling;
    const DetokenizerOptions text{sampling.skip_special_tokens, sampling.stop,
                                  sampling.include_stop_str_in_output};
    Answer answer{.request = request.id,
                  .index = sequence.answer,
                  .prompt_tokens = static_cast<int>(sequence.prompt.size()),
                  .span = request.span,
                  .arrived = request.arrived,
                  .text = Detokenizer(tokenizer_, text)};
    answers_.emplace(sequence.id, std::move(answer));
  }
}

RequestOutput Answers::summary(const Answer& answer) {
  RequestOutput output;
  output.request = answer.request;
  output.answer = answer.index;
  output.prompt_tokens = answer.prompt_tokens;
  output.completion_tokens = answer.completion_tokens;
  output.cached_tokens = answer.cached_tokens;
  output.timings = answer.timings;
  return output;
}

void Answers::keep_time(Answer& answer, const SequenceOutput& news) {
  Timings& timings = answer.timings;
  timings.queue_s = seconds(news.started - answer.arrived);
  timings.total_s = seconds(news.time - answer.arrived);
  if (news.tokens.empty()) return;
  if (answer.completion_tokens == 0) {
    answer.first_token = news.time;
    timings.ttft_s = timings.total_s;
    timings.prefill_s = seconds(news.time - news.started);
  }
  timings.decode_s = seconds(news.time - answer.first_token);
}

void Answers::trace_end(const Answer& answer, FinishReason reason) {
  if (answer.span == 0 || !tracer_.on(TraceLevel::kStep)) return;
  const auto micros = [](double s) { return Micros{static_cast<int64_t>(s * 1e9)}; };
  const Timings& t = answer.timings;
  const int64_t begin = std::chrono::nanoseconds(answer.arrived.time_since_epoch()).count();
  tracer_.add({TraceLevel::kStep, begin, begin + micros(t.total_s).ns, answer.span, Tracer::kRun,
               RequestFinished{.request = answer.request,
                               .answer = answer.index,
                               .reason = to_string(reason),
                               .prompt_tokens = answer.prompt_tokens,
                               .output_tokens = answer.completion_tokens,
                               .cached_tokens = answer.cached_tokens,
                               .queue = micros(t.queue_s),
                               .prefill = micros(t.prefill_s),
                               .ttft = micros(t.ttft_s),
                               .decode = micros(t.decode_s),
                               .e2e = micros(t.total_s),
                               .preemptions = answer.preemptions}});
}

std::optional<RequestOutput> Answers::deliver(SequenceOutput&& news, TraceContext& trace) {
  const auto found = answers_.find(news.sequence);
  if (found == answers_.end()) return std::nullopt;
  Answer& answer = found->second;
  keep_time(answer, news);
  answer.completion_tokens += static_cast<int>(news.tokens.size());
  answer.cached_tokens = news.cached_tokens;
  answer.preemptions = news.preemptions;
  for (ScoredToken& token : news.scored) {
    // A preempted prompt is computed, and scored, again.
    if (token.position > static_cast<int>(answer.prompt_logprobs.size())) {
      answer.prompt_logprobs.push_back({token.token, token.logprob, std::move(token.top)});
    }
  }
  if (news.tokens.empty() && news.finish == FinishReason::kNone) return std::nullopt;

  RequestOutput output = summary(answer);
  output.finish = news.finish;
  output.error = std::move(news.error);
  if (answer.completion_tokens == static_cast<int>(news.tokens.size())) {
    output.prompt_logprobs = std::move(answer.prompt_logprobs);
  }
  PartScope decoding(trace, TraceLevel::kOp, "decoding", "token_decode");
  for (const SampledToken& token : news.tokens) {
    // The token that ends an answer is counted and reported, and is not text.
    const bool ends = news.finish == FinishReason::kStop && &token == &news.tokens.back();
    if (!ends) output.text += answer.text.push(token.token);
  }
  output.tokens = std::move(news.tokens);
  if (answer.text.stopped()) {
    output.finish = FinishReason::kStop;
    output.stop_string = answer.text.stop_string();
  } else if (output.finish != FinishReason::kNone) {
    output.text += answer.text.finish();
  }
  decoding.end();
  if (output.finish == FinishReason::kNone) return output;
  trace_end(answer, output.finish);
  answers_.erase(found);
  return output;
}

Answers::Ended Answers::end(Entry entry) {
  Ended ended{entry->first, summary(entry->second)};
  ended.output.finish = FinishReason::kAbort;
  ended.output.text = entry->second.text.finish();
  trace_end(entry->second, FinishReason::kAbort);
  answers_.erase(entry);
  return ended;
}

std::vector<Answers::Ended> Answers::abort(RequestId request) {
  std::vector<Ended> ended;
  for (;;) {
    // A request's sequences have ids from its own on.
    const auto next = answers_.lower_bound(request);
    if (next == answers_.end() || next->second.request != request) return ended;
    ended.push_back(end(next));
  }
}

std::vector<Answers::Ended> Answers::abort_all() {
  std::vector<Ended> ended;
  while (!answers_.empty()) ended.push_back(end(answers_.begin()));
  return ended;
}

}  // namespace tinyvllm
