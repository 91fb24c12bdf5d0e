// What a line that begins with a slash does in a chat.
#pragma once

#include <string>

#include "apps/chat_session.h"

namespace tinyvllm {

// "/set temperature 0.2" → runs it; an error says what is wrong. `quit` becomes true for /quit.
Status run_chat_command(ChatSession& session, const std::string& line, bool& quit);

}  // namespace tinyvllm
