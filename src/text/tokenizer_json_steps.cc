#include "text/tokenizer_json_steps.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "text/base64.h"
#include "text/regex_syntax.h"
#include "text/token_texts.h"
#include "text/unicode.h"

namespace tinyvllm {
namespace {

constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Error unknown_type(const Json& json, std::string_view type,
                   std::initializer_list<std::string_view> known) {
  std::string list;
  for (const std::string_view name : known) list += str_cat(list.empty() ? "" : ", ", name);
  return error(json.path(), ".type: '", printable(type), "' is not supported; known are: ", list);
}

// {"String": "…"} or {"Regex": "…"}
struct PatternSource {
  std::string_view text;
  bool is_regex = false;
};
Result<PatternSource> read_pattern(const Json& json) {
  TRY_ASSIGN(const Json pattern, json.field("pattern"));
  if (const auto regex = pattern.find("Regex")) {
    TRY_ASSIGN(const std::string_view text, regex->string());
    return PatternSource{text, true};
  }
  TRY_ASSIGN(const std::string_view text, pattern.string_field("String"));
  return PatternSource{text, false};
}

Result<char32_t> read_character(const Json& json, std::string_view key) {
  TRY_ASSIGN(const std::string_view text, json.string_field(key));
  size_t at = 0;
  const char32_t c = text.empty() ? 0 : utf8_next(text, at);
  if (text.empty() || at != text.size()) {
    return error(json.path(), ".", key, ": expected one character, found '", printable(text), "'");
  }
  return c;
}

Result<int64_t> read_count(const Json& json, std::string_view key) {
  constexpr int64_t kMost = 1 << 20;
  TRY_ASSIGN(const Json value, json.field(key));
  TRY_ASSIGN(const int64_t count, value.integer());
  if (count < 0 || count > kMost) return error(value.path(), ": ", count, " is out of range");
  return count;
}

Result<std::unique_ptr<Normalizer>> read_replace(const Json& json) {
  TRY_ASSIGN(const PatternSource pattern, read_pattern(json));
  TRY_ASSIGN(const std::string_view content, json.string_field("content"));
  if (!pattern.is_regex && !pattern.text.empty()) {
    return make_replace(std::string(pattern.text), std::string(content));
  }
  TRY_ASSIGN(Regex regex, Regex::compile(pattern.is_regex ? pattern.text : ""));
  return make_regex_replace(std::move(regex), std::string(content));
}

Result<std::unique_ptr<Normalizer>> read_charsmap(const Json& json) {
  TRY_ASSIGN(const std::string_view encoded, json.string_field("precompiled_charsmap"));
  const auto bytes = base64_decode(encoded);
  if (!bytes.has_value()) return error(json.path(), ".precompiled_charsmap: not base64");
  TRY_ASSIGN(Charsmap map, Charsmap::parse(*bytes));
  return make_charsmap_by_grapheme(std::move(map));
}

Result<std::unique_ptr<Normalizer>> read_one_normalizer(const Json& json, std::string_view type) {
  if (type == "NFC") return make_unicode_normalizer(NormalForm::kNfc);
  if (type == "NFD") return make_unicode_normalizer(NormalForm::kNfd);
  if (type == "NFKC") return make_unicode_normalizer(NormalForm::kNfkc);
  if (type == "NFKD") return make_unicode_normalizer(NormalForm::kNfkd);
  if (type == "Lowercase") return make_lowercase();
  if (type == "StripAccents") return make_strip_accents();
  if (type == "Nmt") return make_nmt();
  if (type == "ByteLevel") return make_byte_alphabet();
  if (type == "Replace") return read_replace(json);
  if (type == "Precompiled") return read_charsmap(json);
  if (type == "Strip") {
    TRY_ASSIGN(const bool left, json.boolean_field("strip_left"));
    TRY_ASSIGN(const bool right, json.boolean_field("strip_right"));
    return make_strip(left, right);
  }
  if (type == "Prepend") {
    TRY_ASSIGN(const std::string_view prefix, json.string_field("prepend"));
    return make_prepend(std::string(prefix));
  }
  return unknown_type(json, type,
                      {"ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled",
                       "Prepend", "Replace", "Sequence", "Strip", "StripAccents"});
}

Result<SplitBehavior> read_behavior(const Json& json) {
  TRY_ASSIGN(const std::string_view name, json.string_field("behavior"));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return error(json.path(), ".behavior: '", printable(name),
               "' is not known; known are: Removed, Isolated, MergedWithPrevious, MergedWithNext, "
               "Contiguous");
}

Result<std::unique_ptr<PreTokenizer>> read_split(const Json& json) {
  TRY_ASSIGN(const PatternSource source, read_pattern(json));
  TRY_ASSIGN(const SplitBehavior behavior, read_behavior(json));
  TRY_ASSIGN(const bool invert, json.boolean_field_or("invert", false));
  TRY_ASSIGN(std::unique_ptr<Pattern> pattern,
             source.is_regex ? make_regex_pattern(source.text) : make_string_pattern(source.text));
  return make_split(std::move(pattern), behavior, invert);
}

Result<MetaspaceOptions> read_metaspace(const Json& json) {
  MetaspaceOptions options;
  TRY_ASSIGN(const char32_t replacement, read_character(json, "replacement"));
  options.replacement.clear();
  utf8_append(options.replacement, replacement);
  TRY_ASSIGN(options.split, json.boolean_field_or("split", true));
  TRY_ASSIGN(const bool prefix_space, json.boolean_field_or("add_prefix_space", true));
  std::string_view scheme = prefix_space ? "always" : "never";
  if (const auto value = json.find("prepend_scheme")) {
    TRY_ASSIGN(scheme, value->string());
  }
  if (scheme == "always") {
    options.prepend = MetaspaceOptions::Prepend::kAlways;
  } else if (scheme == "first") {
    options.prepend = MetaspaceOptions::Prepend::kFirst;
  } else if (scheme == "never") {
    options.prepend = MetaspaceOptions::Prepend::kNever;
  } else {
    return error(json.path(), ".prepend_scheme: '", printable(scheme),
                 "' is not known; known are: always, first, never");
  }
  return options;
}

bool is_punctuation(char32_t c) { return CharacterTable::get()[c].is_punctuation(); }
bool is_numeric(char32_t c) { return CharacterTable::get()[c].is_numeric(); }

// Words and what is neither word nor space; the spaces go.
void add_whitespace(PreTokenizerChain& chain) {
  chain.push_back(make_split(make_character_pattern(is_space), SplitBehavior::kRemoved));
  chain.push_back(make_split(
      make_character_pattern([](char32_t c) { return CharacterTable::get()[c].is_word(); }),
      SplitBehavior::kContiguous));
}

Status read_byte_level(const Json& json, JsonPreTokenizers& result) {
  TRY_ASSIGN(const bool prefix_space, json.boolean_field_or("add_prefix_space", true));
  TRY_ASSIGN(const bool use_regex, json.boolean_field_or("use_regex", true));
  if (prefix_space) result.chain.push_back(make_prefix_space());
  if (use_regex) {
    TRY_ASSIGN(std::unique_ptr<Pattern> pattern, make_regex_pattern(kGpt2Pattern));
    result.chain.push_back(make_split(std::move(pattern), SplitBehavior::kIsolated));
  }
  result.byte_level = true;
  return Status();
}

Status read_one_pretokenizer(const Json& json, std::string_view type, JsonPreTokenizers& result) {
  PreTokenizerChain& chain = result.chain;
  if (type == "ByteLevel") return read_byte_level(json, result);
  if (type == "Split") {
    TRY_ASSIGN(auto step, read_split(json));
    chain.push_back(std::move(step));
  } else if (type == "Digits") {
    TRY_ASSIGN(const bool each, json.boolean_field_or("individual_digits", false));
    chain.push_back(make_split(make_character_pattern(is_numeric),
                               each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous));
  } else if (type == "Punctuation") {
    SplitBehavior behavior = SplitBehavior::kIsolated;
    if (json.find("behavior").has_value()) {
      TRY_ASSIGN(behavior, read_behavior(json));
    }
    chain.push_back(make_split(make_character_pattern(is_punctuation), behavior));
  } else if (type == "WhitespaceSplit") {
    chain.push_back(make_split(make_character_pattern(is_space), SplitBehavior::kRemoved));
  } else if (type == "Whitespace") {
    add_whitespace(chain);
  } else if (type == "BertPreTokenizer") {
    chain.push_back(make_split(make_character_pattern(is_space), SplitBehavior::kRemoved));
    chain.push_back(make_split(make_character_pattern(is_punctuation), SplitBehavior::kIsolated));
  } else if (type == "CharDelimiterSplit" || type == "Delimiter") {
    TRY_ASSIGN(const char32_t delimiter, read_character(json, "delimiter"));
    chain.push_back(make_split(make_character_pattern([=](char32_t c) { return c == delimiter; }),
                               SplitBehavior::kRemoved));
  } else if (type == "Metaspace") {
    TRY_ASSIGN(MetaspaceOptions options, read_metaspace(json));
    chain.push_back(make_metaspace(std::move(options)));
  } else if (type == "FixedLength") {
    int64_t length = 5;
    if (json.find("length").has_value()) {
      TRY_ASSIGN(length, read_count(json, "length"));
    }
    if (length == 0) return error(json.path(), ".length: expected at least 1, found 0");
    chain.push_back(make_fixed_length(static_cast<size_t>(length)));
  } else {
    return unknown_type(
        json, type,
        {"BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "FixedLength",
         "Metaspace", "Punctuation", "Sequence", "Split", "Whitespace", "WhitespaceSplit"});
  }
  return Status();
}

Result<int32_t> token_id(const Json& json) {
  TRY_ASSIGN(const int64_t id, json.integer());
  if (id < 0 || id >= TokenTexts::kMaxTokens) return error(json.path(), ": no token has id ", id);
  return static_cast<int32_t>(id);
}

// ["<s>", 1]
Result<int32_t> pair_id(const Json& json, std::string_view key) {
  TRY_ASSIGN(const Json pair, json.field(key));
  TRY_ASSIGN(const std::vector<Json> items, pair.items());
  if (items.size() != 2) return pair.wrong("a token and its id");
  return token_id(items[1]);
}

// {"SpecialToken": {"id": "<s>"}} stands for the ids that `tokens` lists under that name.
Status append_special(const Json& piece, const Json& tokens, std::vector<int32_t>& ids) {
  TRY_ASSIGN(const Json special, piece.field("SpecialToken"));
  TRY_ASSIGN(const std::string_view name, special.string_field("id"));
  TRY_ASSIGN(const Json token, tokens.field(name));
  TRY_ASSIGN(const Json listed, token.field("ids"));
  TRY_ASSIGN(const std::vector<Json> items, listed.items());
  for (const Json& item : items) {
    TRY_ASSIGN(const int32_t id, token_id(item));
    ids.push_back(id);
  }
  return Status();
}

Status read_template(const Json& json, SpecialIds& ids) {
  TRY_ASSIGN(const Json single, json.field("single"));
  TRY_ASSIGN(const Json tokens, json.field("special_tokens"));
  TRY_ASSIGN(const std::vector<Json> pieces, single.items());
  SpecialIds own;
  int texts = 0;
  for (const Json& piece : pieces) {
    if (piece.find("Sequence").has_value()) {
      texts += 1;
    } else {
      TRY(append_special(piece, tokens, texts == 0 ? own.prefix : own.suffix));
    }
  }
  if (texts != 1)
    return error(single.path(), ": expected the text once, found it ", texts, " times");
  ids.prefix.insert(ids.prefix.begin(), own.prefix.begin(), own.prefix.end());
  ids.suffix.insert(ids.suffix.end(), own.suffix.begin(), own.suffix.end());
  return Status();
}

// What the steps so far leave behind: single tokens, or (after a step that fuses) one long text.
bool fuses(std::string_view type) { return type == "Fuse" || type == "ByteLevel"; }

Status read_one_decoder(const Json& json, std::string_view type, bool fused, DecodeChain& chain) {
  if (type == "Fuse") return Status();
  if (type == "Strip") {
    TRY_ASSIGN(const char32_t content, read_character(json, "content"));
    TRY_ASSIGN(const int64_t start, read_count(json, "start"));
    TRY_ASSIGN(const int64_t stop, read_count(json, "stop"));
    chain.push_back(
        make_strip_decoder(content, static_cast<size_t>(start), static_cast<size_t>(stop), fused));
    return Status();
  }
  // The other steps look at tokens one by one, so they cannot come after these were joined.
  if (fused)
    return error(json.path(), ".type: '", printable(type), "' after Fuse is not supported");
  if (type == "ByteLevel") {
    chain.push_back(make_byte_level_decoder());
  } else if (type == "ByteFallback") {
    chain.push_back(make_byte_fallback_decoder(false));
  } else if (type == "Replace") {
    TRY_ASSIGN(const PatternSource pattern, read_pattern(json));
    TRY_ASSIGN(const std::string_view content, json.string_field("content"));
    if (pattern.is_regex) {
      TRY_ASSIGN(Regex regex, Regex::compile(pattern.text));
      chain.push_back(make_regex_replace_decoder(std::move(regex), std::string(content)));
    } else {
      chain.push_back(make_replace_decoder(std::string(pattern.text), std::string(content)));
    }
  } else if (type == "Metaspace") {
    TRY_ASSIGN(const MetaspaceOptions options, read_metaspace(json));
    const bool drop_first = options.prepend != MetaspaceOptions::Prepend::kNever;
    chain.push_back(make_metaspace_decoder(options.replacement, drop_first));
  } else if (type == "BPEDecoder") {
    TRY_ASSIGN(const std::string_view suffix, json.string_field("suffix"));
    chain.push_back(make_word_suffix_decoder(std::string(suffix)));
  } else {
    return unknown_type(json, type,
                        {"BPEDecoder", "ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Replace",
                         "Sequence", "Strip"});
  }
  return Status();
}

Status read_decoders(const Json& json, bool& fused, DecodeChain& chain) {
  TRY_ASSIGN(const std::string_view type, json.string_field("type"));
  if (type == "Sequence") {
    TRY_ASSIGN(const Json list, json.field("decoders"));
    TRY_ASSIGN(const std::vector<Json> items, list.items());
    for (const Json& item : items) TRY(read_decoders(item, fused, chain));
    return Status();
  }
  TRY(read_one_decoder(json, type, fused, chain));
  fused = fused || fuses(type);
  return Status();
}

}  // namespace

Status read_normalizer(const Json& json, NormalizerChain& chain) {
  TRY_ASSIGN(const std::string_view type, json.string_field("type"));
  if (type == "Sequence") {
    TRY_ASSIGN(const Json list, json.field("normalizers"));
    TRY_ASSIGN(const std::vector<Json> items, list.items());
    for (const Json& item : items) TRY(read_normalizer(item, chain));
    return Status();
  }
  TRY_ASSIGN(auto step, read_one_normalizer(json, type));
  chain.push_back(std::move(step));
  return Status();
}

Status read_pretokenizer(const Json& json, JsonPreTokenizers& result) {
  TRY_ASSIGN(const std::string_view type, json.string_field("type"));
  if (type == "Sequence") {
    TRY_ASSIGN(const Json list, json.field("pretokenizers"));
    TRY_ASSIGN(const std::vector<Json> items, list.items());
    for (const Json& item : items) TRY(read_pretokenizer(item, result));
    return Status();
  }
  if (result.byte_level) {  // not the last step after all
    result.chain.push_back(make_byte_alphabet_pieces());
    result.byte_level = false;
  }
  return read_one_pretokenizer(json, type, result);
}

Status read_post_processor(const Json& json, SpecialIds& ids) {
  TRY_ASSIGN(const std::string_view type, json.string_field("type"));
  if (type == "ByteLevel") return Status();  // adjusts offsets, which nobody asks for here
  if (type == "TemplateProcessing") return read_template(json, ids);
  if (type == "Sequence") {
    TRY_ASSIGN(const Json list, json.field("processors"));
    TRY_ASSIGN(const std::vector<Json> items, list.items());
    for (const Json& item : items) TRY(read_post_processor(item, ids));
    return Status();
  }
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    TRY_ASSIGN(const int32_t first, pair_id(json, "cls"));
    TRY_ASSIGN(const int32_t last, pair_id(json, "sep"));
    ids.prefix.insert(ids.prefix.begin(), first);
    ids.suffix.push_back(last);
    return Status();
  }
  return unknown_type(
      json, type,
      {"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"});
}

Status read_decoder(const Json& json, DecodeChain& chain) {
  bool fused = false;
  return read_decoders(json, fused, chain);
}

}  // namespace tinyvllm
