// What a fuzz target does with a tokenizer that was accepted: uses it, and holds it to its word.
#pragma once

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
    for (const int32_t id : ids) CHECK(id >= 0 && id < tokenizer.vocab_size()) << id;
    CHECK(ids == tokenizer.encode(text, options)) << "encoding twice gives two things";
    CHECK(ids == tokenizer.encode(utf8_replace_invalid(text), options));
    check_decoding(tokenizer, ids);
  }
  std::vector<int32_t> ids = {-1, tokenizer.vocab_size()};
  for (const char byte : text) {
    ids.push_back(static_cast<uint8_t>(byte));
    (void)tokenizer.piece(static_cast<uint8_t>(byte), false);
  }
  check_decoding(tokenizer, ids);
}

}  // namespace tinyvllm::fuzz
