#include "apps/conversation_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <simdjson.h>

#include "apps/conversation.h"
#include "base/json_writer.h"

namespace tinyvllm {

Status save_conversation(const std::string& path, const SavedConversation& conversation) {
  if (std::filesystem::exists(path) && !load_conversation(path).ok()) {
    return error("'", printable(path, 4096), "' is there and is no conversation: not replaced");
  }
  JsonWriter json;
  json.begin_object().field("model", conversation.model).field("system", conversation.system);
  json.key("messages").begin_array();
  for (const ChatMessage& message : conversation.messages) {
    json.begin_object().field("role", message.role).field("content", message.content).end_object();
  }
  json.end_array().end_object();
  // Written aside and renamed: a full disk does not cost what was there.
  const std::string aside = path + ".new";
  std::ofstream file(aside, std::ios::binary);
  file << json.str() << '\n';
  file.close();
  if (!file || std::rename(aside.c_str(), path.c_str()) != 0) {
    const std::string problem = std::strerror(errno);
    std::remove(aside.c_str());
    return error("'", printable(path, 4096), "': ", problem);
  }
  return Status();
}

Result<SavedConversation> load_conversation(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  const auto wrong = [&](const std::string& what) {
    return error("'", printable(path, 4096), "': ", what);
  };
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array messages;
  const simdjson::padded_string padded(text);
  if (parser.parse(padded).get(root) != simdjson::SUCCESS) return wrong("no valid JSON");
  if (root["messages"].get(messages) != simdjson::SUCCESS) {
    return wrong("messages: expected an array");
  }
  SavedConversation conversation;
  std::string_view value;
  if (root["model"].get(value) == simdjson::SUCCESS) conversation.model = value;
  if (root["system"].get(value) == simdjson::SUCCESS) conversation.system = value;
  for (const simdjson::dom::element item : messages) {
    std::string_view role;
    std::string_view content;
    const std::string place = str_cat("messages[", conversation.messages.size(), "]");
    if (item["role"].get(role) != simdjson::SUCCESS ||
        item["content"].get(content) != simdjson::SUCCESS) {
      return wrong(place + ": expected role and content, both strings");
    }
    const char* due = conversation.messages.size() % 2 == 0 ? "user" : "assistant";
    if (role != due) {
      return wrong(str_cat(place, ".role: expected ", due, ", found '", printable(role), "'"));
    }
    conversation.messages.push_back({std::string(role), std::string(content)});
  }
  return conversation;
}

}  // namespace tinyvllm
