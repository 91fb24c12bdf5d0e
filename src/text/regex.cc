#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <algorithm>
#include <optional>
#include <pcre2.h>

#include "base/utf8.h"
#include "text/regex_syntax.h"
#include "text/stand_ins.h"

namespace tinyvllm {
namespace {

// Steps that one match may take: published patterns need a few per character, a hostile one any
// number.
constexpr size_t kStepsPerByte = 100;
constexpr size_t kStepsAlways = 10'000;
constexpr size_t kStepsMost = 1'000'000'000;
constexpr uint32_t kDepthLimit = 10'000;
constexpr uint32_t kHeapLimitKiB = 64 * 1024;
// JIT code that backtracks deeper than the 32 KiB it finds on the machine stack gets this much.
constexpr size_t kJitStackStart = 32 * 1024;
constexpr size_t kJitStackMost = 16 * 1024 * 1024;

template <class T, void (*free_function)(T*)>
struct Free {
  void operator()(T* object) const { free_function(object); }
};
template <class T, void (*free_function)(T*)>
using Handle = std::unique_ptr<T, Free<T, free_function>>;

using Code = Handle<pcre2_code, pcre2_code_free>;
using CompileContext = Handle<pcre2_compile_context, pcre2_compile_context_free>;
using MatchData = Handle<pcre2_match_data, pcre2_match_data_free>;
using MatchContext = Handle<pcre2_match_context, pcre2_match_context_free>;
using JitStack = Handle<pcre2_jit_stack, pcre2_jit_stack_free>;

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

// What one call of find_all needs; PCRE2's compiled code itself is shared between threads.
struct Matcher {
  Matcher(const pcre2_code* compiled, size_t text_bytes)
      : code(compiled),
        data(pcre2_match_data_create_from_pattern(compiled, nullptr)),
        context(pcre2_match_context_create(nullptr)) {
    const size_t steps = std::min(kStepsAlways + kStepsPerByte * text_bytes, kStepsMost);
    pcre2_set_match_limit(context.get(), static_cast<uint32_t>(steps));
    pcre2_set_depth_limit(context.get(), kDepthLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKiB);
  }

  // False when there is no further match, or the limits were reached looking for it.
  bool find(std::string_view text, size_t from, Span& match) {
    int found = run(text, from);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && stack == nullptr) {
      stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackMost, nullptr));
      pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
      found = run(text, from);
    }
    if (found < 0) return false;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    match = {ends[0], ends[1]};
    return match.begin <= match.end;  // \K in a look-ahead can turn them around
  }

  int run(std::string_view text, size_t from) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK, data.get(), context.get());
  }

  const pcre2_code* code;
  MatchData data;
  MatchContext context;
  JitStack stack;
};

}  // namespace

struct Regex::Compiled {
  explicit Compiled(std::string_view pattern) : stand_ins(pattern) {}
  Code code;
  StandIns stand_ins;
};

Result<Regex> Regex::compile(std::string_view pattern) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  TRY_ASSIGN(const std::string translated, translate_pattern(pattern));
  const CompileContext context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  auto compiled = std::make_shared<Compiled>(translated);
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                     translated.size(), options, &code, &offset, context.get()));
  if (compiled->code == nullptr) {
    return error("pattern '", printable(pattern, 400), "': ", message_of(code));
  }
  // Where the JIT cannot work (no executable memory), PCRE2 interprets: slower, the same matches.
  pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::move(compiled));
}

void Regex::find_all(std::string_view text, std::vector<Span>& matches) const {
  const std::optional<std::string> substituted = compiled_->stand_ins.put_into(text);
  if (substituted.has_value()) text = *substituted;
  Matcher matcher(compiled_->code.get(), text.size());
  Span match;
  size_t last_end = std::string_view::npos;  // of the match before
  for (size_t from = 0; from <= text.size() && matcher.find(text, from, match);) {
    if (match.empty() && match.end == last_end) {
      // An empty match right after another match is none: look again one character on.
      if (from == text.size()) break;
      from += static_cast<size_t>(utf8_sequence_length(text.substr(from)));
      continue;
    }
    matches.push_back(match);
    from = last_end = match.end;
  }
}

std::string Regex::replaced(std::string_view text, std::string_view to) const {
  std::vector<Span> matches;
  find_all(text, matches);
  std::string out;
  size_t copied = 0;
  for (const Span& match : matches) {
    out += text.substr(copied, match.begin - copied);
    out += to;
    copied = match.end;
  }
  out += text.substr(copied);
  return out;
}

}  // namespace tinyvllm
