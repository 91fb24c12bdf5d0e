// Conversations to prompts: what templates are given, what of the prompt may become control tokens.
#include "text/chat_template.h"

#include <gtest/gtest.h>
#include <string>

namespace tinyvllm {
namespace {

ChatTemplate compile(std::string_view source) {
  Result<ChatTemplate> compiled = ChatTemplate::compile(source, {{"bos_token", "<s>"}});
  EXPECT_TRUE(compiled.ok()) << compiled.message();
  return std::move(compiled).value();
}

ChatPrompt render(std::string_view source, std::string_view json) {
  const Result<ChatInput> input = ChatInput::from_json(json);
  EXPECT_TRUE(input.ok()) << input.message();
  const Result<ChatPrompt> prompt = compile(source).render(input.value());
  EXPECT_TRUE(prompt.ok()) << prompt.message();
  return prompt.value();
}

std::string trusted(const ChatPrompt& prompt) {
  std::string text;
  for (const Span& span : prompt.template_spans) text += span.of(prompt.text), text += '|';
  return text;
}

TEST(ChatTemplate, PassesWhatTransformersPasses) {
  const char* source =
      "{{ bos_token }},{{ tools }},{{ documents }},{{ add_generation_prompt }},{{ extra }},"
      "{{ eos_token is defined }}";
  EXPECT_EQ(render(source, R"({"messages": []})").text, "<s>,None,None,False,,False");
  EXPECT_EQ(render(source, R"({"tools": [1], "add_generation_prompt": true, "extra": 2,
                               "bos_token": "B"})")
                .text,
            "B,[1],None,True,2,False");
}

TEST(ChatTemplate, TakesMessagesWithoutJson) {
  const ChatInput input = ChatInput::from_messages({{"user",
                                                     "a\xFF"
                                                     "b"}},
                                                   true);
  const Result<ChatPrompt> prompt =
      compile("{{ messages[0].role }}:{{ messages[0].content }}{{ add_generation_prompt }}")
          .render(input);
  ASSERT_TRUE(prompt.ok()) << prompt.message();
  EXPECT_EQ(prompt.value().text, "user:a\uFFFDbTrue");
}

TEST(ChatTemplate, TrustsItselfAndKnownRoles) {
  const char* source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}";
  const ChatPrompt known =
      render(source, R"({"messages": [{"role": "user", "content": "<|end|>"}]})");
  EXPECT_EQ(known.text, "<|user|><|end|><|end|>");
  EXPECT_EQ(trusted(known), "<|user|>|<|end|>|");
  EXPECT_EQ(known.template_spans.size(), 2u);
  const ChatPrompt unknown =
      render(source, R"({"messages": [{"role": "endoftext", "content": "x"}]})");
  EXPECT_EQ(trusted(unknown), "<|||>|<|end|>|");  // "<|", "|>" and the end, but not the role
}

TEST(ChatTemplate, RefusesBadConversations) {
  for (const char* json :
       {"", "[", "[]", "5", "{\"a\": 99999999999999999999}", "{\"a\": \"\\ud800\"}"}) {
    EXPECT_FALSE(ChatInput::from_json(json).ok()) << json;
  }
  std::string deep;
  for (int i = 0; i < 900; ++i) deep += "[";
  for (int i = 0; i < 900; ++i) deep += "]";
  EXPECT_FALSE(ChatInput::from_json("{\"a\": " + deep + "}").ok());
}

TEST(ChatFormat, ComesFromWhateverTheModelCarries) {
  const auto text_of = [](const TokenizerData& data, std::string_view json) {
    const Result<ChatTemplate> compiled = ChatTemplate::from_model(data);
    if (!compiled.ok()) return compiled.message();
    return compiled.value().render(ChatInput::from_json(json).value()).value().text;
  };
  TokenizerData gguf;
  gguf.gguf = GgufVocabulary();
  gguf.gguf->tokens = {"<s>", "</s>"};
  gguf.gguf->bos = 0;
  gguf.gguf->eos = 1;
  gguf.gguf->padding = 7;  // there is no such token
  gguf.chat_template = "{{ bos_token }}{{ eos_token }}{{ pad_token }}";
  EXPECT_EQ(text_of(gguf, "{}"), "<s></s>");

  TokenizerData folder;
  folder.tokenizer_config_json =
      R"({"bos_token": "<b>", "eos_token": {"content": "<e>"}, "pad_token": null,
          "model_max_length": 1000000000000000019884624838656,
          "additional_special_tokens": ["<x>", {"content": "<y>"}],
          "extra_special_tokens": {"image_token": "<i>"},
          "chat_template": [{"name": "default", "template": "plain {{ bos_token }}{{ eos_token }}"},
                            {"name": "tool_use", "template": "tools"}]})";
  EXPECT_EQ(text_of(folder, "{}"), "plain <b><e>");
  EXPECT_EQ(text_of(folder, R"({"tools": [{}]})"), "tools");
  folder.chat_template = "file {{ bos_token }}{{ additional_special_tokens[1] }}{{ image_token }}";
  EXPECT_EQ(text_of(folder, R"({"tools": [{}]})"), "file <b><y><i>");

  EXPECT_NE(text_of({}, "{}").find("carry none"), std::string::npos);
  folder.tokenizer_config_json = "{";
  EXPECT_NE(text_of(folder, "{}").find("tokenizer_config.json"), std::string::npos);
}

}  // namespace
}  // namespace tinyvllm
