#include "text/gguf_pretokenizers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/unicode.h"

namespace tinyvllm {
namespace {

// The expressions as they stand in the tokenizer.json files; several models share most of them.
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINES_AND_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define UPPER_NOT_HAN R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define LOWER_NOT_HAN R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define BEFORE_WORD R"([^\r\n\p{L}\p{N}]?)"

constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    CONTRACTIONS "|" BEFORE_WORD R"(\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LINES_AND_SPACES;
constexpr const char* kQwen2 =
    CONTRACTIONS "|" BEFORE_WORD R"(\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LINES_AND_SPACES;
constexpr const char* kQwen35 = CONTRACTIONS
    "|" BEFORE_WORD R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" LINES_AND_SPACES;
constexpr const char* kMiniCpm5 =
    CONTRACTIONS "|" BEFORE_WORD R"(\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LINES_AND_SPACES;
constexpr const char* kJais2 = CONTRACTIONS
    "|" BEFORE_WORD
    R"(\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|)"
    R"(\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|)"
    R"(\s{1,2}(?!\S)|\s{1})";
constexpr const char* kSeedCoder =
    CONTRACTIONS "|" BEFORE_WORD R"(\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" LINES_AND_SPACES;
constexpr const char* kExaoneMoe =
    CONTRACTIONS "|" BEFORE_WORD
                 R"((?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|)"
                 R"(\s+(?!\S)|\s+)";
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
    R"(\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o =
    BEFORE_WORD UPPER "*" LOWER "+" CONTRACTIONS "?|" BEFORE_WORD UPPER "+" LOWER "*" CONTRACTIONS
                      R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" LINES_AND_SPACES;
constexpr const char* kYoutu =
    BEFORE_WORD UPPER "*" LOWER "+" CONTRACTIONS "?|" BEFORE_WORD UPPER "+" LOWER "*" CONTRACTIONS
                      R"(?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" LINES_AND_SPACES;
constexpr const char* kTekken =
    BEFORE_WORD UPPER "*" LOWER "+|" BEFORE_WORD UPPER "+" LOWER
                      "*"
                      R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" LINES_AND_SPACES;
constexpr const char* kKimi =
    R"([\p{Han}]+|)" BEFORE_WORD UPPER_NOT_HAN "*" LOWER_NOT_HAN "+" CONTRACTIONS
    "?|" BEFORE_WORD UPPER_NOT_HAN "+" LOWER_NOT_HAN "*" CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LINES_AND_SPACES;
constexpr const char* kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|)" LINES_AND_SPACES;
constexpr const char* kDeepseekLetters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
    R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B})"
    R"(\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
    R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943}]+)";
constexpr const char* kDeepseekPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* kDeepseekCjk = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* kCjkAndKana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kYoutuScripts =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019})"
    R"(\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|)"
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kBloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";

// One cut: at the matches of an expression, unless it is one of the other kinds.
struct Step {
  enum class Kind { kExpression, kEachDigit, kDigits, kPunctuationRuns, kByteAlphabet };

  Step(const char* pattern) : expression(pattern) {}  // NOLINT: an expression is a step
  Step(Kind which) : kind(which) {}                   // NOLINT: and so is a kind

  Kind kind = Kind::kExpression;
  const char* expression = nullptr;
};
constexpr auto kEachDigit = Step::Kind::kEachDigit;
constexpr auto kDigits = Step::Kind::kDigits;
constexpr auto kPunctuationRuns = Step::Kind::kPunctuationRuns;
constexpr auto kByteAlphabet = Step::Kind::kByteAlphabet;

// One way of splitting, under all the names that it goes by. Each step cuts what the one before it
// left.
struct Family {
  std::vector<const char*> names;
  std::vector<Step> steps;
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {.names = {"default"},
       .steps = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de",
                 "jina-v2-code", "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert",
                 "exaone4", "trillion", "granite-docling", "jais"},
       .steps = {kGpt2}},
      {.names = {"mpt", "olmo"}, .steps = {kGpt2}, .nfc = true},
      {.names = {"smollm", "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"},
       .steps = {kEachDigit, kGpt2}},
      {.names = {"command-r"}, .steps = {kEachDigit, kGpt2}, .nfc = true},
      {.names = {"falcon"},
       .steps = {kPunctuationRuns, kGpt2, kByteAlphabet, kDigits, "[0-9][0-9][0-9]"}},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2", "jina-v5-nano"},
       .steps = {kLlama3},
       .ignore_merges = true,
       .add_bos = true},
      {.names = {"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, .steps = {kLlama3}},
      {.names = {"jais-2"}, .steps = {kJais2}},
      {.names = {"qwen2", "stablelm2", "megrez", "f2llmv2", "kormo"},
       .steps = {kQwen2},
       .nfc = true},
      {.names = {"deepseek-r1-qwen", "hunyuan", "solar-open", "grok-2"}, .steps = {kQwen2}},
      {.names = {"qwen35"}, .steps = {kQwen35}, .nfc = true},
      {.names = {"laguna"}, .steps = {R"([^\n]+|[\n]+)", kQwen2}},
      {.names = {"minicpm5"}, .steps = {R"(\p{N}{1,3})", kMiniCpm5}, .ignore_merges = true},
      {.names = {"seed-coder"}, .steps = {kSeedCoder}},
      {.names = {"exaone-moe"}, .steps = {kExaoneMoe}},
      {.names = {"bailingmoe", "bailingmoe2", "llada-moe"}, .steps = {kBailing}},
      {.names = {"deepseek-llm"},
       .steps = {R"([\r\n])", kDeepseekLetters, kDeepseekPunctuation, R"(\s+$)", kDeepseekCjk,
                 kDigits}},
      {.names = {"deepseek-coder"},
       .steps = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, kEachDigit}},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       .steps = {R"(\p{N}{1,3})", kCjkAndKana, kDeepseekV3}},
      {.names = {"youtu"}, .steps = {kYoutuScripts, kYoutu}, .ignore_merges = true},
      {.names = {"tekken"}, .steps = {kTekken}, .ignore_merges = true, .add_bos = true},
      {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, .steps = {kGpt4o}},
      {.names = {"granite-embed-multi-97m"}, .steps = {kGpt4o}, .ignore_merges = true},
      {.names = {"tiny_aya", "cohere2moe"}, .steps = {R"(\d{1,3}(?=(?:\d{3})*\b))", kGpt4o}},
      {.names = {"kimi-k2"}, .steps = {kKimi}},
      {.names = {"superbpe"}, .steps = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}},
      {.names = {"poro-chat", "bloom", "gpt3-finnish"}, .steps = {kBloom}},
      {.names = {"viking"}, .steps = {kBloom, kEachDigit}},
      {.names = {"chameleon"},
       .steps = {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", R"(([\t\n]|    |  ))",
                 kEachDigit, R"([\p{P}!-/:-@\[-`{-~])", kGpt2},
       .add_bos = true},
  };
  return kFamilies;
}

const Family* find_family(std::string_view name) {
  for (const Family& family : families()) {
    if (std::find(family.names.begin(), family.names.end(), name) != family.names.end()) {
      return &family;
    }
  }
  return nullptr;
}

std::string known_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    names.insert(names.end(), family.names.begin(), family.names.end());
  }
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

bool is_numeric(char32_t c) { return CharacterTable::get()[c].is_numeric(); }
bool is_punctuation(char32_t c) { return CharacterTable::get()[c].is_punctuation(); }

Result<std::unique_ptr<PreTokenizer>> make_step(const Step& step) {
  switch (step.kind) {
    case kEachDigit:
      return make_split(make_character_pattern(is_numeric), SplitBehavior::kIsolated);
    case kDigits:
      return make_split(make_character_pattern(is_numeric), SplitBehavior::kContiguous);
    case kPunctuationRuns:
      return make_split(make_character_pattern(is_punctuation), SplitBehavior::kContiguous);
    case kByteAlphabet:
      return make_byte_alphabet_pieces();
    case Step::Kind::kExpression:
      break;
  }
  TRY_ASSIGN(std::unique_ptr<Pattern> pattern, make_regex_pattern(step.expression));
  return make_split(std::move(pattern), SplitBehavior::kIsolated);
}

}  // namespace

std::vector<std::string_view> gguf_pretokenizer_names() {
  std::vector<std::string_view> names = {"llama-bpe", "qwen2", "smollm", "gpt-2", "dbrx"};
  for (const Family& family : families()) {
    const std::string_view name = family.names.front();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

Result<GgufPreTokenizer> make_gguf_pretokenizer(std::string_view name) {
  const Family* family = find_family(name.empty() ? "default" : name);
  if (family == nullptr) {
    return error("tokenizer.ggml.pre: unknown pre-tokenizer '", printable(name),
                 "'; known are: ", known_names());
  }
  GgufPreTokenizer result;
  result.ignore_merges = family->ignore_merges;
  result.add_bos = family->add_bos;
  if (family->nfc) result.normalizers.push_back(make_unicode_normalizer(NormalForm::kNfc));
  for (const Step& step : family->steps) {
    TRY_ASSIGN(auto made, make_step(step));
    result.steps.push_back(std::move(made));
    result.in_byte_alphabet = result.in_byte_alphabet || step.kind == kByteAlphabet;
  }
  return result;
}

}  // namespace tinyvllm
