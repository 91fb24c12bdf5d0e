// Text and lines of JSON on their way into and out of tokenize and detokenize.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/model_files.h"
#include "text/tokenizer.h"

namespace tinyvllm {

// A tokenizer and the files that it may point into.
struct OpenedTokenizer {
  std::unique_ptr<ModelFiles> files;
  std::unique_ptr<Tokenizer> tokenizer;
};
Result<OpenedTokenizer> open_tokenizer(const std::string& model);

Result<std::string> read_stdin();

// Calls `answer` for each line of stdin and prints what it gives, a line each, at once. Empty lines
// are left out. An error names the line.
Status for_each_line(const std::function<Result<std::string>(std::string_view line)>& answer);

Result<std::string> parse_json_string(std::string_view line);
Result<std::vector<int32_t>> parse_json_ids(std::string_view line);

}  // namespace tinyvllm
