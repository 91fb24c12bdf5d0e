// Part of `tinyvllm bench text`: what a chat template costs, once to compile and then for every
// request that carries a conversation of 50 messages.
#include <algorithm>
#include <filesystem>

#include "apps/bench_text.h"
#include "apps/conversation.h"
#include "base/json_writer.h"
#include "text/chat_template.h"

namespace tinyvllm {
namespace {

constexpr char kTemplates[] = "tests/data/templates";
constexpr double kLimit = 1000;  // us, for either
constexpr int kMessages = 50;
constexpr int kRunsPerSample = 20;

// A system message, then questions and answers of a few hundred bytes each.
std::string conversation() {
  std::string paragraph;
  for (int i = 0; i < 8; ++i) paragraph += "Some words about the weather in the mountains. ";
  JsonWriter json;
  json.begin_object().field("add_generation_prompt", true).field("bos_token", "<s>");
  json.field("eos_token", "</s>").key("messages").begin_array();
  for (int i = 0; i < kMessages; ++i) {
    const bool user = i % 2 == 1;
    json.begin_object().field("role", i == 0 ? "system" : user ? "user" : "assistant");
    json.field("content", paragraph).end_object();
  }
  return json.end_array().end_object().str();
}

template <class Work>
TextRow measure(std::string subject, std::string name, int samples, const Work& work) {
  TextRow row{.subject = std::move(subject), .name = std::move(name), .unit = "us"};
  row.limit = kLimit;
  for (int i = 0; i < samples; ++i) {
    const double start = thread_seconds();
    for (int run = 0; run < kRunsPerSample; ++run) work();
    row.samples.push_back((thread_seconds() - start) * 1e6 / kRunsPerSample);
  }
  std::sort(row.samples.begin(), row.samples.end());
  return row;
}

Status bench_template(const std::string& path, const ChatInput& input, int samples,
                      std::vector<TextRow>& rows) {
  TRY_ASSIGN(const std::string source, read_file(path));
  TRY_ASSIGN(const ChatTemplate compiled, ChatTemplate::compile(source, {}));
  const Result<ChatPrompt> prompt = compiled.render(input);
  if (!prompt.ok()) return error(path, ": ", prompt.message());
  const std::string subject = std::filesystem::path(path).stem().string().substr(0, 12);
  rows.push_back(measure(subject, "compile the template", samples,
                         [&] { (void)ChatTemplate::compile(source, {}).ok(); }));
  rows.push_back(
      measure(subject, "render 50 messages", samples, [&] { (void)compiled.render(input).ok(); }));
  return Status();
}

}  // namespace

Status bench_templates(const TextFlags& flags, std::vector<TextRow>& rows) {
  std::vector<std::string> files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(kTemplates, failure)) {
    if (entry.path().extension() == ".jinja") files.push_back(entry.path().string());
  }
  if (failure) return error(kTemplates, ": ", failure.message());
  std::sort(files.begin(), files.end());
  TRY_ASSIGN(const ChatInput input, ChatInput::from_json(conversation()));
  for (const std::string& file : files) TRY(bench_template(file, input, flags.samples, rows));
  return Status();
}

}  // namespace tinyvllm
