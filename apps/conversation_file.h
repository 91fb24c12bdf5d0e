// A conversation as a file: {"model", "system", "messages": [{"role", "content"}, …]}.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "text/chat_template.h"

namespace tinyvllm {

struct SavedConversation {
  std::string model;  // that it was held with, for people
  std::string system;
  std::vector<ChatMessage> messages;  // of user and assistant in turn
};

// Replaces a file only if that holds a conversation too.
Status save_conversation(const std::string& path, const SavedConversation& conversation);
Result<SavedConversation> load_conversation(const std::string& path);

}  // namespace tinyvllm
