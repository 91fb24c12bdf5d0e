// Lines that a person types, with editing and history, through libedit; or plain lines, when stdin
// is no terminal. Knows nothing of chats.
//
// A message may have several lines: after a backslash at a line's end, between two lines of """,
// with Alt-Enter, or pasted (bracketed paste keeps a paste in one piece).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace tinyvllm {

class LineEditor {
 public:
  // History is read from `history_file` and written back at the end; trouble with that is silent.
  explicit LineEditor(std::filesystem::path history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Outcome { kMessage, kInterrupted, kEnd };  // kEnd: Ctrl-D, or stdin is over
  Outcome read_message(std::string& message);

  bool interactive() const { return terminal_ != nullptr; }

 private:
  struct Terminal;
  Outcome read_line(const char* prompt, std::string& line);

  std::unique_ptr<Terminal> terminal_;  // absent when stdin or stdout is none
};

// The text without what could steer a terminal: control characters other than newline and tab.
std::string terminal_safe(const std::string& text);

}  // namespace tinyvllm
