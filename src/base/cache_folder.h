// Where this user's caches live: $XDG_CACHE_HOME/tinyvllm, or ~/.cache/tinyvllm.
#pragma once

#include <filesystem>

namespace tinyvllm {

std::filesystem::path cache_folder();  // need not exist

}  // namespace tinyvllm
