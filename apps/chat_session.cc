#include "apps/chat_session.h"

#include <cstdio>
#include <unistd.h>

#include "apps/command.h"
#include "apps/conversation_file.h"
#include "apps/decode_meter.h"
#include "apps/line_editor.h"
#include "core/sampling_fields.h"

namespace tinyvllm {
namespace {

void print_note(const std::string& text) {
  const bool colour = use_colour(STDERR_FILENO);
  std::fprintf(stderr, "%s%s%s\n", colour ? "\033[2m" : "", text.c_str(), colour ? "\033[0m" : "");
}

}  // namespace

Status ChatSession::ask(const std::string& text) {
  messages_.push_back({"user", text});
  const Status answered = answer();
  if (!answered.ok()) messages_.pop_back();
  return answered;
}

Status ChatSession::regenerate() {
  if (messages_.empty()) return error("there is no answer yet");
  const ChatMessage before = std::move(messages_.back());
  messages_.pop_back();
  const Status answered = answer();
  if (!answered.ok()) messages_.push_back(before);
  return answered;
}

// Appends an answer to the messages, also one that Ctrl-C cut short: it was read.
Status ChatSession::answer() {
  std::vector<ChatMessage> conversation = messages_;
  if (!system_.empty()) conversation.insert(conversation.begin(), {"system", system_});
  Reply reply;
  TRY_ASSIGN(reply.prompt_ids, format_.encode(conversation));
  TRY_ASSIGN(const RequestId request, engine_.add_request(reply.prompt_ids, sampling_));
  reply.expect(sampling_);
  DecodeMeter meter(engine_.model(), 1);
  while (engine_.has_work() && !interrupted()) {
    const std::vector<RequestOutput> outputs = engine_.step();
    meter.after_step(outputs);
    for (const RequestOutput& output : outputs) {
      if (!output.error.empty()) return error(output.error);
      reply.add(output);
      const std::string text = terminal_safe(output.text);
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
  }
  engine_.abort(request);
  std::printf("\n");
  std::fflush(stdout);
  if (interrupted()) print_note("(stopped; /regenerate tries again)");
  if (reply.answers[0].finish == FinishReason::kLength) {
    print_note(reply.answers[0].tokens.size() >= static_cast<size_t>(sampling_.max_tokens)
                   ? "(max_tokens reached)"
                   : "(the context is full: /reset starts anew)");
  }
  reply.decode_tok_s = meter.tokens_per_s();
  reply.gigabytes_per_s = meter.bytes_per_s() / 1e9;
  messages_.push_back({"assistant", reply.answers[0].text});
  last_ = std::move(reply);
  return Status();
}

Status ChatSession::save(const std::string& path) const {
  return save_conversation(path, {model_, system_, messages_});
}

Status ChatSession::load(const std::string& path) {
  TRY_ASSIGN(SavedConversation saved, load_conversation(path));
  // A question without its answer, as other tools may save it: it is to be asked again.
  if (saved.messages.size() % 2 == 1) saved.messages.pop_back();
  system_ = std::move(saved.system);
  messages_ = std::move(saved.messages);
  return Status();
}

Status ChatSession::set(const std::string& name, const std::string& value) {
  const SamplingField* field = find_sampling_field(name);
  if (field == nullptr) return error("'", printable(name), "': no such field; /set lists them");
  if (name == "n") return error("n: a chat has one answer at a time");
  SamplingParams changed = sampling_;
  TRY(set_sampling_field(changed, *field, std::vector{value}));
  TRY(validate(changed, {.vocab_size = engine_.model().info().vocab_size}));
  sampling_ = changed;
  return Status();
}

void ChatSession::print_stats() const {
  const size_t used = last_.prompt_ids.size() + last_.completion_tokens();
  std::printf("conversation  %zu questions, %zu of %d tokens of context\n", messages_.size() / 2,
              messages_.empty() ? 0 : used, engine_.max_model_len());
  if (!last_.prompt_ids.empty()) {
    std::printf("last prompt   %zu tokens, %d of them cached, first token in %.2f s\n",
                last_.prompt_ids.size(), last_.cached_tokens, last_.ttft_s);
    std::printf("last answer   %zu tokens, %.1f tok/s, %.1f GB/s\n", last_.completion_tokens(),
                last_.decode_tok_s, last_.gigabytes_per_s);
  }
  const EngineStats stats = engine_.stats();
  std::printf(
      "KV cache      %d of %d blocks in use; %llu of %llu prompt tokens were found cached\n",
      stats.used_blocks, stats.total_blocks,
      static_cast<unsigned long long>(stats.prefix.hit_tokens),
      static_cast<unsigned long long>(stats.prefix.queried_tokens));
  std::fflush(stdout);
}

}  // namespace tinyvllm
