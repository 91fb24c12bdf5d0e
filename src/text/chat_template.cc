#include "text/chat_template.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include "base/utf8.h"
#include "text/chat_format.h"
#include "text/template/json_value.h"
#include "text/template/template.h"

namespace tinyvllm {
namespace {

using jinja::Dict;
using jinja::Heap;
using jinja::Kind;
using jinja::Origin;
using jinja::Value;

constexpr size_t kNoLimit = ~size_t{0};

// Templates build control tokens from roles: '<|' + message['role'] + '|>'. A role that is one of
// these is the program's own word, whoever wrote it; any other stays a message's.
constexpr std::string_view kRoles[] = {"system",   "user",      "assistant", "tool",
                                       "function", "developer", "ipython",   "observation"};

void trust_roles(Heap& heap, const Value* messages) {
  if (messages == nullptr || !messages->is(Kind::kList)) return;
  for (const Value& message : *messages->list) {
    if (!message.is(Kind::kDict)) continue;
    const Value* role = message.dict->find("role");
    if (role == nullptr || !role->is(Kind::kStr)) continue;
    const std::string_view name = role->str->view();
    if (std::find(std::begin(kRoles), std::end(kRoles), name) == std::end(kRoles)) continue;
    message.dict->set(heap, new_text(heap, "role"), new_text(heap, name, Origin::kTemplate));
  }
}

Value token_value(Heap& heap, const ChatTemplate::NamedToken& token) {
  if (token.list.empty()) return new_text(heap, token.text, Origin::kTemplate);
  std::vector<Value> items;
  for (const std::string& text : token.list) {
    items.push_back(new_text(heap, text, Origin::kTemplate));
  }
  return new_list(heap, items);
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  localtime_r(&now, &time);
  return time;
}

std::vector<Span> template_spans(const jinja::Rendered& rendered) {
  std::vector<Span> spans;
  size_t begin = 0;
  bool ours = rendered.first == Origin::kTemplate;
  const auto close = [&](size_t end) {
    if (ours && begin < end) spans.push_back({begin, end});
    ours = !ours;
    begin = end;
  };
  for (const uint32_t flip : rendered.flips) close(flip);
  close(rendered.text.size());
  return spans;
}

}  // namespace

struct ChatInput::Variables {
  Heap heap{kNoLimit};
  Dict* values = nullptr;
};

ChatInput::ChatInput(std::unique_ptr<Variables> variables) : variables_(std::move(variables)) {}
ChatInput::~ChatInput() = default;
ChatInput::ChatInput(ChatInput&&) noexcept = default;
ChatInput& ChatInput::operator=(ChatInput&&) noexcept = default;

Result<ChatInput> ChatInput::from_json(std::string_view json) {
  auto variables = std::make_unique<Variables>();
  Heap& heap = variables->heap;
  TRY_ASSIGN(const Value root, parse_json(heap, json, Origin::kMessage));
  if (!root.is(Kind::kDict)) return error("conversation: expected a JSON object with 'messages'");
  variables->values = root.dict;
  const auto set_default = [&](std::string_view name, const Value& value) {
    if (root.dict->find(name) == nullptr) root.dict->set(heap, new_text(heap, name), value);
  };
  set_default("tools", Value::none());
  set_default("documents", Value::none());
  set_default("add_generation_prompt", Value(false));
  trust_roles(heap, root.dict->find("messages"));
  return ChatInput(std::move(variables));
}

ChatInput ChatInput::from_messages(const std::vector<ChatMessage>& messages,
                                   bool add_generation_prompt) {
  auto variables = std::make_unique<Variables>();
  Heap& heap = variables->heap;
  std::vector<Value> items;
  for (const ChatMessage& message : messages) {
    Dict* item = heap.make<Dict>();
    const auto set = [&](std::string_view name, std::string_view text) {
      const std::string valid = utf8_replace_invalid(text);
      item->set(heap, new_text(heap, name), new_text(heap, valid, Origin::kMessage));
    };
    set("role", message.role);
    set("content", message.content);
    items.push_back(Value::of_dict(item, Origin::kMessage));
  }
  Dict* values = heap.make<Dict>();
  const Value list = new_list(heap, items, Origin::kMessage);
  values->set(heap, new_text(heap, "messages"), list);
  values->set(heap, new_text(heap, "tools"), Value::none());
  values->set(heap, new_text(heap, "documents"), Value::none());
  values->set(heap, new_text(heap, "add_generation_prompt"), Value(add_generation_prompt));
  trust_roles(heap, &list);
  variables->values = values;
  return ChatInput(std::move(variables));
}

struct ChatTemplate::Programs {
  std::vector<NamedToken> tokens;
  jinja::Template plain;
  std::optional<jinja::Template> with_tools;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Programs> programs) : programs_(std::move(programs)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::compile(std::string_view source,
                                           std::vector<NamedToken> tokens) {
  TRY_ASSIGN(jinja::Template plain, jinja::Template::compile(source, jinja::Limits()));
  return ChatTemplate(
      std::make_unique<Programs>(Programs{std::move(tokens), std::move(plain), std::nullopt}));
}

Result<ChatTemplate> ChatTemplate::from_model(const TokenizerData& data, std::string_view instead) {
  TRY_ASSIGN(const ChatFormat format, read_chat_format(data));
  if (!instead.empty()) return compile(instead, format.tokens);
  if (format.source.empty()) {
    return error("chat_template: the model's files carry none; give one with --chat-template FILE");
  }
  TRY_ASSIGN(ChatTemplate result, compile(format.source, format.tokens));
  if (!format.source_with_tools.empty()) {
    TRY_ASSIGN(result.programs_->with_tools,
               jinja::Template::compile(format.source_with_tools, jinja::Limits()));
  }
  return result;
}

Result<ChatPrompt> ChatTemplate::render(const ChatInput& input) const {
  Heap heap(kNoLimit);
  Dict variables;
  for (const NamedToken& token : programs_->tokens) {
    variables.set(heap, new_text(heap, token.name), token_value(heap, token));
  }
  const Dict& given = *input.variables_->values;
  for (const Dict::Entry& entry : given) variables.set(heap, entry.key, entry.value);

  const Value* tools = given.find("tools");
  const bool use_tools =
      programs_->with_tools.has_value() && tools != nullptr && !tools->is(Kind::kNone);
  const jinja::Template& program = use_tools ? *programs_->with_tools : programs_->plain;
  TRY_ASSIGN(jinja::Rendered rendered, program.render(variables, jinja::Limits(), local_time()));
  ChatPrompt prompt;
  prompt.template_spans = template_spans(rendered);
  prompt.text = std::move(rendered.text);
  return prompt;
}

bool ChatTemplate::mentions(std::string_view text) const {
  return programs_->plain.mentions(text) ||
         (programs_->with_tools.has_value() && programs_->with_tools->mentions(text));
}

namespace {

// <|fim_prefix|>, <｜tool▁calls▁begin｜>: nobody writes these but to steer a model, whatever the
// model's files call them.
bool looks_like_control(std::string_view word) {
  return (word.starts_with("<|") && word.ends_with("|>")) ||
         (word.starts_with("<｜") && word.ends_with("｜>"));
}

}  // namespace

// White space is ordinary text, even where a model has a token of its own for it.
ChatEncoder::ChatEncoder(const Tokenizer& tokenizer, const ChatTemplate& chat_template)
    : tokenizer_(tokenizer) {
  for (std::string& word : tokenizer.added_words()) {
    const bool blank = word.find_first_not_of(" \t\n\r") == std::string::npos;
    if (blank) continue;
    if (looks_like_control(word) || chat_template.mentions(word)) {
      control_words_.insert(std::move(word));
    }
  }
}

std::vector<int32_t> ChatEncoder::encode(const ChatPrompt& prompt) const {
  const TrustedText trusted{prompt.template_spans, &control_words_};
  return tokenizer_.encode(prompt.text, {.add_special = false, .trusted = &trusted});
}

}  // namespace tinyvllm
