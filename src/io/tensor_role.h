// What a tensor is for, judged by its name: enough to add up sizes by component and to know which
// bytes a decoded token reads, for architectures that nobody has taught us yet too.
#pragma once

#include <string_view>

#include "io/model_files.h"

namespace tinyvllm {

enum class Component { kEmbedding, kAttention, kFeedForward, kNorms, kHead, kOther };
constexpr int kComponentCount = 6;
const char* component_name(Component component);

struct TensorRole {
  Component component = Component::kOther;
  bool by_row = false;   // a table of which a token reads one row
  bool experts = false;  // routed: a token reads the experts it is sent to
  bool decoded = true;   // read when text is decoded: not so for towers that see or hear
};

TensorRole tensor_role(ModelFormat format, std::string_view name);

}  // namespace tinyvllm
