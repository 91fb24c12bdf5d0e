// Models by name whose shapes are known and whose weights are made up: the config.json that their
// authors published, as far as it says anything about sizes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tinyvllm {

std::optional<std::string_view> preset_config(std::string_view name);
std::string preset_names();  // "tiny, tinyllama-1.1b, …"

}  // namespace tinyvllm
