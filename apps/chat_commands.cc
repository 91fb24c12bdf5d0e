#include "apps/chat_commands.h"

#include <cstdio>

#include "core/sampling_fields.h"

namespace tinyvllm {
namespace {

struct Command {
  const char* name;
  const char* argument;
  const char* help;
  Status (*run)(ChatSession& session, const std::string& argument);
};

std::string take_word(std::string& text) {
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  std::string word = text.substr(0, end);
  const size_t next = text.find_first_not_of(" \t\n", end);
  text = next == std::string::npos ? "" : text.substr(next);
  return word;
}

Status help(ChatSession& session, const std::string& argument);

Status set_system(ChatSession& session, const std::string& text) {
  if (!text.empty()) session.set_system(text == "-" ? "" : text);
  std::printf("%s\n", session.system().empty() ? "no system message" : session.system().c_str());
  return Status();
}

Status reset(ChatSession& session, const std::string&) {
  session.reset();
  return Status();
}

Status regenerate(ChatSession& session, const std::string&) { return session.regenerate(); }

Status save(ChatSession& session, const std::string& path) {
  if (path.empty()) return error("/save: expected the name of a file");
  return session.save(path);
}

Status load(ChatSession& session, const std::string& path) {
  if (path.empty()) return error("/load: expected the name of a file");
  TRY(session.load(path));
  std::printf("%zu questions and answers\n", session.messages().size() / 2);
  return Status();
}

Status stats(ChatSession& session, const std::string&) {
  session.print_stats();
  return Status();
}

Status set(ChatSession& session, const std::string& argument) {
  std::string value = argument;
  const std::string name = take_word(value);
  if (!name.empty() && !value.empty()) return session.set(name, value);
  if (!name.empty() && find_sampling_field(name) == nullptr) {
    return error("'", printable(name), "': no such field; /set lists them");
  }
  for (const SamplingField& field : sampling_fields()) {
    if (!name.empty() && name != field.name) continue;
    std::printf("%-26s %-10s %s\n", field.name,
                sampling_field_text(session.sampling(), field).c_str(), field.help);
  }
  return Status();
}

Status quit_chat(ChatSession&, const std::string&) { return Status(); }

constexpr Command kCommands[] = {
    {"/help", "", "this list", help},
    {"/system", "[TEXT]", "show or change the system message; - for none", set_system},
    {"/reset", "", "forget the conversation", reset},
    {"/regenerate", "", "answer the last question again", regenerate},
    {"/save", "FILE", "write the conversation to a file", save},
    {"/load", "FILE", "go on with a conversation from a file", load},
    {"/stats", "", "what the last answer cost, and what was cached", stats},
    {"/set", "[FIELD VALUE]", "show or change sampling: /set temperature 0.2", set},
    {"/quit", "", "leave; so does Ctrl-D", quit_chat},
};

Status help(ChatSession&, const std::string&) {
  for (const Command& command : kCommands) {
    const std::string usage = str_cat(command.name, " ", command.argument);
    std::printf("%-20s %s\n", usage.c_str(), command.help);
  }
  std::printf(
      "\nSeveral lines: end a line with \\, or begin and end with \"\"\", or Alt-Enter, or paste.\n"
      "Ctrl-C stops an answer. Two slashes begin a message that begins with one.\n");
  return Status();
}

}  // namespace

Status run_chat_command(ChatSession& session, const std::string& line, bool& quit) {
  std::string argument = line;
  const std::string name = take_word(argument);
  for (const Command& command : kCommands) {
    if (name != command.name) continue;
    if (*command.argument == '\0' && !argument.empty()) {
      return error(name, ": expected nothing after it, found '", printable(argument), "'");
    }
    quit = command.run == quit_chat;
    const Status status = command.run(session, argument);
    std::fflush(stdout);
    return status;
  }
  return error("'", printable(name), "': no such command; /help lists them");
}

}  // namespace tinyvllm
