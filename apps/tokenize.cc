// tinyvllm tokenize MODEL [TEXT | -]: the ids of a text, and the pieces that they stand for.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <unistd.h>

#include "apps/command.h"
#include "apps/text_input.h"
#include "base/json_writer.h"

namespace tinyvllm {
namespace {

struct TokenizeFlags {
  std::string model;
  std::string text = "-";
  bool json = false;
  bool jsonl = false;
  bool no_bos = false;
  bool special = false;

  EncodeOptions options() const { return {.add_special = !no_bos, .parse_special = special}; }
};

std::string ids_as_json(const std::vector<int32_t>& ids) {
  JsonWriter json;
  json.value(ids);
  return json.str();
}

void print_json(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  JsonWriter json;
  json.begin_object().field("ids", ids).key("pieces").begin_array();
  for (const int32_t id : ids) json.value(tokenizer.piece(id, false));
  json.end_array().field("count", ids.size()).field("tokenizer", tokenizer.kind()).end_object();
  std::printf("%s\n", json.str().c_str());
}

void print_ids(const std::vector<int32_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) std::printf(i == 0 ? "%d" : " %d", ids[i]);
  std::printf("\n");
}

// Each piece on a ground of its own colour, line by line as the text is; below them the ids. Pieces
// that hold part of a character are shown as their bytes.
void print_coloured(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  static constexpr int kGrounds[] = {153, 157, 223, 217, 189};
  for (size_t i = 0; i < ids.size(); ++i) {
    const int ground = kGrounds[i % std::size(kGrounds)];
    std::string piece = tokenizer.piece(ids[i], false);
    for (bool first = true; first || !piece.empty(); first = false) {
      const size_t line_end = piece.find('\n');
      const std::string shown = printable(piece.substr(0, line_end), SIZE_MAX);
      const bool breaks = line_end != std::string::npos;
      std::printf("\033[38;5;16;48;5;%dm%s%s\033[0m%s", ground, shown.c_str(), breaks ? "⏎" : "",
                  breaks ? "\n" : "");
      piece.erase(0, breaks ? line_end + 1 : piece.size());
    }
  }
  std::printf("\n\033[2m");
  print_ids(ids);
  std::printf("%zu tokens, %s\033[0m\n", ids.size(), tokenizer.kind().c_str());
}

Status tokenize(const TokenizeFlags& flags) {
  TRY_ASSIGN(const OpenedTokenizer opened, open_tokenizer(flags.model));
  const Tokenizer& tokenizer = *opened.tokenizer;
  if (flags.jsonl) {
    return for_each_line([&](std::string_view line) -> Result<std::string> {
      TRY_ASSIGN(const std::string text, parse_json_string(line));
      return ids_as_json(tokenizer.encode(text, flags.options()));
    });
  }
  std::string text = flags.text;
  if (text == "-") {
    TRY_ASSIGN(text, read_stdin());
  }
  const std::vector<int32_t> ids = tokenizer.encode(text, flags.options());
  if (flags.json) {
    print_json(tokenizer, ids);
  } else if (use_colour(STDOUT_FILENO)) {
    print_coloured(tokenizer, ids);
  } else {
    print_ids(ids);
  }
  return Status();
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into token ids");
  const auto flags = std::make_shared<TokenizeFlags>();
  command->add_option("MODEL", flags->model, "a .gguf file, a folder with a tokenizer, or an alias")
      ->required();
  command->add_option("TEXT", flags->text, "the text, or - for standard input")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object: ids, pieces");
  command->add_flag("--jsonl", flags->jsonl,
                    "read a JSON string per line, print an array of ids per line");
  command->add_flag("--no-bos", flags->no_bos, "leave out the BOS and EOS that the model asks for");
  command->add_flag("--special", flags->special,
                    "let text that spells a control token become that token");
  command->footer("Example:\n  tinyvllm tokenize smollm2 'Hello, world' --json | jq .ids");
  command->callback([flags, &action] { action = [flags] { return tokenize(*flags); }; });
}

}  // namespace tinyvllm
