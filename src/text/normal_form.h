// Unicode normal forms, with the data of Unicode 9 that published tokenizers apply: what came later
// is left as it is.
#pragma once

#include <string>

#include "text/normalizer.h"

namespace tinyvllm {

// Linear but for the sorting of accents that pile up on one letter.
void normalize_unicode(std::string& text, NormalForm form);

}  // namespace tinyvllm
