// Base64 as RFC 4648 defines it, with padding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tinyvllm {

// Nothing when the text is not base64.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace tinyvllm
