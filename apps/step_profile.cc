#include "apps/step_profile.h"

#include <string_view>

#include "apps/command.h"

namespace tinyvllm {
namespace {

double ms_between(int64_t begin_ns, int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) / 1e6;
}

bool is_sampling(const OpCall& call) { return std::string_view(call.op) == "sample"; }

ProfiledStep sort_out(const std::vector<OpCall>& calls, int64_t begin_ns, int64_t end_ns) {
  ProfiledStep step;
  step.total_ms = ms_between(begin_ns, end_ns);
  if (calls.empty()) return step;
  step.phase = calls.front().phase;
  for (const OpCall& call : calls) {
    if (is_sampling(call)) {
      step.sample_ms += ms_between(call.begin_ns, call.end_ns);
    } else {
      step.ops.push_back(call);
    }
  }
  if (!step.ops.empty()) {
    step.forward_ms = ms_between(step.ops.front().begin_ns, step.ops.back().end_ns);
  }
  step.schedule_ms =
      ms_between(begin_ns, calls.front().begin_ns) + ms_between(calls.back().end_ns, end_ns);
  return step;
}

// Keeps the ledger for as long as it lives.
class Watch {
 public:
  Watch(LLMEngine& engine, Ledger* ledger) : engine_(engine) {
    engine_.runner().keep_ledger(ledger);
  }
  ~Watch() { engine_.runner().keep_ledger(nullptr); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  LLMEngine& engine_;
};

}  // namespace

Result<ProfiledRequest> profile_request(LLMEngine& engine, const Prompt& prompt, int tokens,
                                        bool watch) {
  SamplingParams sampling;
  sampling.temperature = 0;
  sampling.ignore_eos = true;
  sampling.max_tokens = tokens;
  Ledger ledger;
  const Watch watching(engine, watch ? &ledger : nullptr);
  ProfiledRequest result;
  const std::unique_ptr<TokenStream> text = engine.tokenizer().stream(/*skip_special=*/true);

  const int64_t begin = now_ns();
  TRY_ASSIGN(PreparedRequest request, engine.prepare(prompt, sampling, {}));
  const int64_t encoded = now_ns();
  result.encode_ms = ms_between(begin, encoded);
  const SequenceId sequence = request.sequences.front().id;
  TRY(engine.core().add(std::move(request.sequences.front())));
  while (engine.core().has_work()) {
    if (interrupted()) {
      engine.core().abort(sequence);
      return error("interrupted");
    }
    ledger.clear();
    const int64_t step_begin = now_ns();
    const std::vector<SequenceOutput> outputs = engine.core().step();
    const int64_t step_end = now_ns();
    result.steps.push_back(sort_out(ledger.calls(), step_begin, step_end));
    for (const SequenceOutput& output : outputs) {
      if (!output.error.empty()) return error(output.error);
      for (const SampledToken& token : output.tokens) {
        const int64_t before = now_ns();
        text->push(token.token, result.text);
        result.decode_text_ms.push_back(ms_between(before, now_ns()));
        result.tokens += 1;
      }
    }
  }
  text->finish(result.text);
  result.total_ms = ms_between(begin, now_ns());
  return result;
}

}  // namespace tinyvllm
