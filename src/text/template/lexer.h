// Source text to tokens. Text outside of tags becomes data, with the white space taken away that a
// `-`, a `+`, trim_blocks or lstrip_blocks asks for; comments and raw blocks end here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/sandbox.h"

namespace tinyvllm::jinja {

enum class Tok : uint8_t {
  kData,
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kAdd,
  kSub,
  kMul,
  kPow,
  kDiv,
  kFloorDiv,
  kMod,
  kTilde,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAssign,
  kDot,
  kColon,
  kComma,
  kSemicolon,
  kPipe,
  kLeftParen,
  kRightParen,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kEnd,
};

struct Token {
  Tok kind = Tok::kEnd;
  uint32_t begin = 0;  // bytes of the source, as normalize_newlines() left it
  uint32_t end = 0;
  Position at;
  std::string text;  // data, name, or the string with its escapes undone
  int64_t integer = 0;
  double number = 0;
};

// Every line ends in \n, and one line end at the very end is dropped.
std::string normalize_newlines(std::string_view source);

// The last token is kEnd. Throws TemplateError.
std::vector<Token> tokenize(std::string_view source);

// How an error message calls a token.
std::string describe(const Token& token);
std::string_view describe(Tok kind);

// The inside of a string literal with its escapes undone, as Python's "unicode-escape" does it.
std::string unescape(std::string_view literal);

}  // namespace tinyvllm::jinja
