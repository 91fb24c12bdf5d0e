// Which tokens end an answer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tinyvllm {

// Whether a control token of this spelling ends a turn or a text in the published chat models.
// Files often name one of several such tokens and leave the others to the reader.
bool spells_end(std::string_view token);

// Sorted, each once, nothing outside 0…vocab_size-1.
std::vector<int32_t> tidy_end_ids(std::vector<int64_t> ids, size_t vocab_size);

}  // namespace tinyvllm
