// What a fuzz target does with a tokenizer that was accepted: uses it, and holds it to its word.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace tinyvllm::fuzz {

inline void check_decoding(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  for (const bool skip : {false, true}) {
    const std::string whole = tokenizer.decode(ids, skip);
    CHECK(is_utf8(whole)) << printable(whole);
    Detokenizer detokenizer(tokenizer, {.skip_special = skip, .stop = {}, .include_stop = false});
    std::string joined;
    for (const int32_t id : ids) {
      const std::string delta = detokenizer.push(id);
      CHECK(is_utf8(delta)) << printable(delta);
      joined += delta;
    }
    joined += detokenizer.finish();
    CHECK(joined == whole) << printable(joined) << " is not " << printable(whole);
  }
}

inline void check_ids(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) CHECK(id >= 0 && id < tokenizer.vocab_size()) << id;
}

// Only parts of the text may become control tokens: none of it, or every other seven bytes.
inline void check_trusted(const Tokenizer& tokenizer, const std::string& text) {
  TrustedText trusted;
  const std::vector<int32_t> plain = tokenizer.encode(text, {});
  CHECK(plain == tokenizer.encode(text, {.trusted = &trusted}));
  for (size_t at = 0; at + 7 <= text.size(); at += 14) trusted.spans.push_back({at, at + 7});
  check_ids(tokenizer, tokenizer.encode(text, {.trusted = &trusted}));
  const std::vector<std::string> words = tokenizer.added_words();
  const std::set<std::string, std::less<>> control_words(words.begin(), words.end());
  trusted.control_words = &control_words;
  check_ids(tokenizer, tokenizer.encode(text, {.trusted = &trusted}));
  trusted.spans = {{0, text.size()}};
  check_ids(tokenizer, tokenizer.encode(text, {.trusted = &trusted}));
}

// The next of an input's parts, which are separated so.
inline std::string_view take_part(std::string_view& bytes) {
  constexpr std::string_view kSeparator = "\x1E\x1E\x1E\x1E";
  const size_t cut = bytes.find(kSeparator);
  const std::string_view part = bytes.substr(0, cut);
  bytes.remove_prefix(cut == std::string_view::npos ? bytes.size() : cut + kSeparator.size());
  return part;
}

// What the targets encode besides their input: a bit of everything, characters that are younger
// than the libraries' tables too.
inline constexpr std::string_view kText =
    "  The <s>quick</s>  brown\n漢字 ▁fox ① 123 é\u0301 "
    "<0x41>\U00031350\U0002EBF0\U00010D40\u1C89 ";

inline void use(const Tokenizer& tokenizer, std::string_view text) {
  // Patterns of a hostile file may take many steps per character.
  constexpr size_t kLongest = 200;
  text = text.substr(0, kLongest);
  CHECK(!tokenizer.kind().empty());
  for (const int32_t id : tokenizer.end_ids()) {
    CHECK(id >= 0 && id < tokenizer.vocab_size());
    CHECK(tokenizer.is_end(id));
  }
  for (const bool special : {false, true}) {
    const EncodeOptions options{.add_special = special, .parse_special = special};
    const std::vector<int32_t> ids = tokenizer.encode(text, options);
    check_ids(tokenizer, ids);
    CHECK(ids == tokenizer.encode(text, options)) << "encoding twice gives two things";
    CHECK(ids == tokenizer.encode(utf8_replace_invalid(text), options));
    check_decoding(tokenizer, ids);
  }
  check_trusted(tokenizer, utf8_replace_invalid(text));
  std::vector<int32_t> ids = {-1, tokenizer.vocab_size()};
  for (const char byte : text) {
    ids.push_back(static_cast<uint8_t>(byte));
    (void)tokenizer.piece(static_cast<uint8_t>(byte), false);
  }
  check_decoding(tokenizer, ids);
}

}  // namespace tinyvllm::fuzz
