// Text to measure tokenizers on: made up, but with the shape of the real thing (a few words very
// often, many words rarely, sentences, indentation). The same size gives the same text.
#pragma once

#include <cstddef>
#include <string>

namespace tinyvllm {

std::string sample_english(size_t bytes);
std::string sample_chinese(size_t bytes);
std::string sample_code(size_t bytes);

}  // namespace tinyvllm
