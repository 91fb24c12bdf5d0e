// Whole files of text, in and out. An error names the file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tinyvllm {

Result<std::string> read_text_file(const std::string& path);
Status write_text_file(const std::string& path, std::string_view text);  // "-" is stdout

}  // namespace tinyvllm
