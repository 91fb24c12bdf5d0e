// tinyvllm detokenize MODEL IDS… | -: the text that ids stand for.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>

#include "apps/command.h"
#include "apps/text_input.h"
#include "base/json_writer.h"

namespace tinyvllm {
namespace {

struct DetokenizeFlags {
  std::string model;
  std::vector<std::string> ids = {"-"};
  bool json = false;
  bool jsonl = false;
  bool special = false;
};

// Numbers with anything of spaces, commas and brackets between them, so that what tokenize prints
// can be pasted as it is.
Status append_ids(std::string_view text, std::vector<int32_t>& ids) {
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\r\n,[]");
    if (begin == std::string_view::npos) return Status();
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(" \t\r\n,[]"));
    int32_t id = -1;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (failure != std::errc() || end != word.data() + word.size() || id < 0) {
      return error("expected token ids, found '", printable(word), "'");
    }
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

Result<std::vector<int32_t>> read_ids(const DetokenizeFlags& flags) {
  std::vector<int32_t> ids;
  if (flags.ids.size() == 1 && flags.ids[0] == "-") {
    TRY_ASSIGN(const std::string text, read_stdin());
    TRY(append_ids(text, ids));
  } else {
    for (const std::string& text : flags.ids) TRY(append_ids(text, ids));
  }
  return ids;
}

std::string text_as_json(const std::string& text) {
  JsonWriter json;
  json.value(text);
  return json.str();
}

Status detokenize(const DetokenizeFlags& flags) {
  TRY_ASSIGN(const OpenedTokenizer opened, open_tokenizer(flags.model));
  const Tokenizer& tokenizer = *opened.tokenizer;
  if (flags.jsonl) {
    return for_each_line([&](std::string_view line) -> Result<std::string> {
      TRY_ASSIGN(const std::vector<int32_t> ids, parse_json_ids(line));
      return text_as_json(tokenizer.decode(ids, !flags.special));
    });
  }
  TRY_ASSIGN(const std::vector<int32_t> ids, read_ids(flags));
  const std::string text = tokenizer.decode(ids, !flags.special);
  if (flags.json) {
    JsonWriter json;
    json.begin_object().field("text", text).field("ids", ids).end_object();
    std::printf("%s\n", json.str().c_str());
  } else {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::printf("\n");
  }
  return Status();
}

}  // namespace

void add_detokenize(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("detokenize", "Turn token ids into text");
  const auto flags = std::make_shared<DetokenizeFlags>();
  command->add_option("MODEL", flags->model, "a .gguf file, a folder with a tokenizer, or an alias")
      ->required();
  command->add_option("IDS", flags->ids, "token ids, or - for standard input");
  command->add_flag("--json", flags->json, "print one JSON object: text, ids");
  command->add_flag("--jsonl", flags->jsonl,
                    "read an array of ids per line, print a JSON string per line");
  command->add_flag("--special", flags->special, "show control tokens too");
  command->footer("Example:\n  tinyvllm tokenize smollm2 'Hello' | tinyvllm detokenize smollm2 -");
  command->callback([flags, &action] { action = [flags] { return detokenize(*flags); }; });
}

}  // namespace tinyvllm
