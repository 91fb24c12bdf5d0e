#include "apps/text_input.h"

#include <cstdio>
#include <iostream>
#include <limits>
#include <simdjson.h>

#include "apps/command.h"
#include "base/utf8.h"

namespace tinyvllm {

Result<OpenedTokenizer> open_tokenizer(const std::string& model) {
  OpenedTokenizer opened;
  TRY_ASSIGN(const std::string path, resolve_model(model));
  TRY_ASSIGN(opened.files, ModelFiles::open_tokenizer(path));
  TRY_ASSIGN(opened.tokenizer, Tokenizer::create(opened.files->tokenizer()));
  return opened;
}

Result<std::string> read_stdin() {
  std::string text;
  char buffer[1 << 16];
  size_t count = 0;
  while ((count = std::fread(buffer, 1, sizeof buffer, stdin)) > 0) text.append(buffer, count);
  if (std::ferror(stdin) != 0) return error("standard input cannot be read");
  return text;
}

Status for_each_line(const std::function<Result<std::string>(std::string_view line)>& answer) {
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.empty()) continue;
    Result<std::string> result = answer(line);
    if (!result.ok()) return error("line ", number, ": ", result.message());
    std::string& out = result.value();
    out += '\n';
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
  }
  return Status();
}

Result<std::string> parse_json_string(std::string_view line) {
  simdjson::dom::parser parser;
  std::string_view text;
  const simdjson::padded_string padded(utf8_replace_invalid(line));
  if (parser.parse(padded).get(text) != simdjson::SUCCESS) {
    return error("expected a JSON string, found ", printable(line));
  }
  return std::string(text);
}

Result<std::vector<int32_t>> parse_json_ids(std::string_view line) {
  simdjson::dom::parser parser;
  simdjson::dom::array array;
  const simdjson::padded_string padded(line);
  if (parser.parse(padded).get(array) != simdjson::SUCCESS) {
    return error("expected an array of token ids, found ", printable(line));
  }
  std::vector<int32_t> ids;
  for (const simdjson::dom::element item : array) {
    int64_t id = 0;
    if (item.get(id) != simdjson::SUCCESS || id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return error("item ", ids.size(), " of the array is no token id");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace tinyvllm
