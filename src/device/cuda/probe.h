// Whether this build has kernels that a card runs.
#pragma once

#include <string>

#include "base/result.h"

namespace tinyvllm {

// An error that names the card, what it would need and what there is.
Status check_kernels(const std::string& card, int major, int minor);

}  // namespace tinyvllm
