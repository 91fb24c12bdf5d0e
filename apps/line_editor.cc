#include "apps/line_editor.h"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <histedit.h>
#include <iostream>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "apps/command.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace tinyvllm {
namespace {

constexpr int kHistorySize = 1000;
constexpr char kInvisible = '\1';  // brackets what takes no room in a prompt
constexpr std::string_view kFence = "\"\"\"";

volatile sig_atomic_t resized = 0;    // signals are the process's, and so are these
volatile sig_atomic_t continued = 0;  // after Ctrl-Z and fg

void watch(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

// Characters are read by their width, so the locale must be one of UTF-8.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

std::string to_utf8(const wchar_t* text) {
  std::string utf8;
  for (; *text != L'\0'; ++text) utf8_append(utf8, static_cast<char32_t>(*text));
  return utf8;
}

std::wstring to_wide(std::string_view text) {
  const std::string valid = utf8_replace_invalid(text);
  std::wstring wide;
  for (size_t at = 0; at < valid.size();) wide += static_cast<wchar_t>(utf8_next(valid, at));
  return wide;
}

bool remove_suffix(std::string& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

}  // namespace

struct LineEditor::Terminal {
  explicit Terminal(std::filesystem::path file) : history_file(std::move(file)) {
    use_utf8();
    watch(SIGWINCH, [](int) { resized = 1; });
    watch(SIGCONT, [](int) { continued = 1; });
    HistEventW event;
    history = history_winit();
    history_w(history, &event, H_SETSIZE, kHistorySize);
    history_w(history, &event, H_SETUNIQUE, 1);
    history_w(history, &event, H_LOAD, history_file.c_str());
    edit = el_init("tinyvllm", stdin, stdout, stderr);
    el_wset(edit, EL_CLIENTDATA, this);
    el_wset(edit, EL_EDITOR, L"emacs");
    el_wset(edit, EL_SIGNAL, 0);
    el_wset(edit, EL_HIST, history_w, history);
    el_wset(edit, EL_GETCFN, &Terminal::read_character);
    el_wset(edit, EL_PROMPT_ESC, &Terminal::current_prompt, static_cast<int>(kInvisible));
    // Its updates by inserting and deleting in a row tear characters of two columns; without these
    // capabilities it writes the row's rest anew.
    for (const wchar_t* capability :
         {L"ic", L"IC", L"im", L"ei", L"ip", L"dc", L"DC", L"dm", L"ed"}) {
      el_wset(edit, EL_SETTC, capability, L"", nullptr);
    }
    el_wset(edit, EL_ADDFN, L"paste", L"Insert what is pasted", &Terminal::paste);
    el_wset(edit, EL_ADDFN, L"new-line", L"Insert a newline", &Terminal::insert_newline);
    el_wset(edit, EL_BIND, L"\\e[200~", L"paste", nullptr);
    el_wset(edit, EL_BIND, L"\\e\\r", L"new-line", nullptr);
    el_wset(edit, EL_BIND, L"\\e\\n", L"new-line", nullptr);
    el_wset(edit, EL_BIND, L"\\e[3~", L"ed-delete-next-char", nullptr);
    el_wset(edit, EL_BIND, L"\\e[1;5C", L"em-next-word", nullptr);
    el_wset(edit, EL_BIND, L"\\e[1;5D", L"ed-prev-word", nullptr);
    el_wset(edit, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
    el_wset(edit, EL_BIND, L"^I", L"ed-insert", nullptr);
  }

  ~Terminal() {
    HistEventW event;
    std::error_code failed;
    std::filesystem::create_directories(history_file.parent_path(), failed);
    history_w(history, &event, H_SAVE, history_file.c_str());
    chmod(history_file.c_str(), S_IRUSR | S_IWUSR);  // what people say to a model is theirs
    el_end(edit);
    history_wend(history);
  }

  static Terminal& of(EditLine* edit) {
    void* self = nullptr;
    el_wget(edit, EL_CLIENTDATA, &self);
    return *static_cast<Terminal*>(self);
  }

  static wchar_t* current_prompt(EditLine* edit) { return of(edit).prompt.data(); }

  // Waits for input or a signal, whichever comes; a signal just before the wait is not missed.
  static bool wait_for_input() {
    sigset_t ours;
    sigset_t before;
    sigemptyset(&ours);
    for (const int signal : {SIGINT, SIGWINCH, SIGCONT}) sigaddset(&ours, signal);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    int ready = -1;
    if (!interrupted() && resized == 0 && continued == 0) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      ready = ppoll(&input, 1, nullptr, &before);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return ready > 0;
  }

  // One byte; 0 at the end of the input, -1 when Ctrl-C asks to stop.
  int read_byte(char& byte) {
    while (!wait_for_input()) {
      if (interrupted()) {
        errno = EINTR;
        return -1;
      }
      clear_rows();
      if (std::exchange(continued, 0) != 0) el_wset(edit, EL_PREP_TERM, 1);
      if (std::exchange(resized, 0) != 0) el_resize(edit);
      el_wset(edit, EL_REFRESH);
    }
    const ssize_t count = read(STDIN_FILENO, &byte, 1);
    return static_cast<int>(count);
  }

  // What is being typed leaves the screen, from the prompt on: where the cursor is follows from the
  // widths of what is before it.
  void clear_rows() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
    const LineInfoW* line = el_wline(edit);
    int row = 0;
    int column = 2;  // of "> "
    for (const wchar_t* c = line->buffer; c < line->cursor; ++c) {
      const int width = *c == L'\n' ? 0 : std::max(0, wcwidth(*c));
      const bool wraps = *c == L'\n' || column + width > size.ws_col;
      row += wraps ? 1 : 0;
      column = (wraps ? 0 : column) + width;
    }
    if (row > 0) std::fprintf(stdout, "\033[%dA", row);
    std::fputs("\r\033[J", stdout);
  }

  static int read_character(EditLine* edit, wchar_t* out) {
    Terminal& terminal = of(edit);
    std::string bytes;
    char byte = 0;
    do {
      const int count = terminal.read_byte(byte);
      if (count <= 0) return count;
      bytes += byte;
    } while (utf8_incomplete_suffix(bytes) == bytes.size());
    size_t at = 0;
    const bool whole = utf8_sequence_length(bytes) == static_cast<int>(bytes.size());
    *out = static_cast<wchar_t>(whole ? utf8_next(bytes, at) : kReplacementCharacter);
    return 1;
  }

  // Everything up to the end mark, as one piece; terminals send newlines as carriage returns.
  static unsigned char paste(EditLine* edit, wint_t) {
    std::wstring text;
    const std::wstring end = L"\033[201~";
    wchar_t character = 0;
    while (!text.ends_with(end)) {
      if (read_character(edit, &character) <= 0) return CC_EOF;
      text += character == L'\r' ? L'\n' : character;
    }
    text.resize(text.size() - end.size());
    while (text.ends_with(L'\n')) text.pop_back();
    return el_winsertstr(edit, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  static unsigned char insert_newline(EditLine* edit, wint_t) {
    return el_winsertstr(edit, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
  }

  Outcome read_line(const char* text, std::string& line) {
    // What takes no room is printed with the character after it: so the space comes last.
    const std::string mark(1, kInvisible);
    prompt = to_wide(use_colour(STDOUT_FILENO)
                         ? mark + "\033[1;32m" + mark + text + mark + "\033[0m" + mark + " "
                         : str_cat(text, " "));
    el_wset(edit, EL_PREP_TERM, 1);     // now, not after the prompt was seen and typed at
    std::fputs("\033[?2004h", stdout);  // pastes in brackets
    std::fflush(stdout);
    int count = 0;
    const wchar_t* typed = el_wgets(edit, &count);
    std::fputs("\033[?2004l", stdout);
    if (typed == nullptr) std::fputs("\n", stdout);
    std::fflush(stdout);
    if (typed == nullptr) return interrupted() ? Outcome::kInterrupted : Outcome::kEnd;
    line = to_utf8(typed);
    remove_suffix(line, "\n");
    return Outcome::kMessage;
  }

  void remember(const std::string& message) {
    HistEventW event;
    history_w(history, &event, H_ENTER, to_wide(message).c_str());
  }

  const std::filesystem::path history_file;
  std::wstring prompt;
  HistoryW* history = nullptr;
  EditLine* edit = nullptr;
};

LineEditor::LineEditor(std::filesystem::path history_file) {
  if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
    terminal_ = std::make_unique<Terminal>(std::move(history_file));
  }
}

LineEditor::~LineEditor() = default;

LineEditor::Outcome LineEditor::read_line(const char* prompt, std::string& line) {
  if (terminal_ != nullptr) return terminal_->read_line(prompt, line);
  return std::getline(std::cin, line) ? Outcome::kMessage : Outcome::kEnd;
}

LineEditor::Outcome LineEditor::read_message(std::string& message) {
  Outcome outcome = read_line(">", message);
  if (outcome != Outcome::kMessage) return outcome;
  const bool fenced = message.starts_with(kFence);
  if (fenced) message.erase(0, kFence.size());
  std::string line;
  while (fenced ? !remove_suffix(message, kFence) : remove_suffix(message, "\\")) {
    outcome = read_line("…", line);
    if (outcome != Outcome::kMessage) return outcome;
    message += '\n';
    message += line;
  }
  if (terminal_ != nullptr && !message.empty()) terminal_->remember(message);
  return Outcome::kMessage;
}

std::string terminal_safe(const std::string& text) {
  std::string safe;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = utf8_next(text, at);
    const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
    if (!control || c == '\n' || c == '\t') safe.append(text, begin, at - begin);
  }
  return safe;
}

}  // namespace tinyvllm
