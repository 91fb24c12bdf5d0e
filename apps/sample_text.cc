#include "apps/sample_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "base/utf8.h"

namespace tinyvllm {
namespace {

constexpr std::string_view kCommonWords =
    "the of and to in a is that for it as was with be by on not he I this are or his from at "
    "which but have an had they you were their one all we can her has there been if more when "
    "will would who so no out up said what its about than into them could time only some other "
    "then two may these first do any like my now over such our man me even most made after also "
    "did many before must through back years where much your way well down should because each "
    "just those people how too little state good very make world still own see men work long "
    "get here between both life being under never day same another know while last might us "
    "great old year off come since against go came right used take three function number system "
    "language model memory value string thread process machine information example question "
    "government company university development international performance understanding";
constexpr std::string_view kSyllables =
    "an er in on re con de pro tion ment able ing ly est ver com pre ter al is at or us it ra "
    "lo mi no ta vi ca be so pe sti gra phy log ex tri bu ne du ce";
constexpr std::u32string_view kCommonCharacters =
    U"的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过"
    U"发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本"
    U"前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很"
    U"最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度"
    U"门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电"
    U"数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马"
    U"科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万"
    U"取拉格望觉术领共确传师观清今切院让识候带导争运笔模型数据";

class Random {
 public:
  uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }
  size_t below(size_t limit) { return next() % limit; }
  // The first items often, the others ever more rarely: Zipf's law.
  size_t zipf(size_t limit) {
    const double u = static_cast<double>(next()) / 2147483648.0;
    return std::min(limit - 1, static_cast<size_t>(std::pow(static_cast<double>(limit), u)) - 1);
  }

 private:
  uint64_t state_ = 1;
};

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Common words first, then thousands of rarer ones made of syllables.
std::vector<std::string> make_words(Random& random) {
  std::vector<std::string> words = split_words(kCommonWords);
  const std::vector<std::string> syllables = split_words(kSyllables);
  while (words.size() < 20000) {
    std::string word;
    for (size_t n = 2 + random.below(3); n > 0; --n)
      word += syllables[random.below(syllables.size())];
    words.push_back(std::move(word));
  }
  return words;
}

std::string capital(std::string word) {
  if (word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

}  // namespace

std::string sample_english(size_t bytes) {
  Random random;
  const std::vector<std::string> words = make_words(random);
  std::string text;
  while (text.size() < bytes) {
    const size_t length = 4 + random.below(20);
    for (size_t i = 0; i < length; ++i) {
      const std::string& word = words[random.zipf(words.size())];
      text += i == 0 ? capital(word) : word;
      if (random.below(40) == 0) text += "'s";
      if (random.below(60) == 0) text += str_cat(" ", random.below(2100));
      text += i + 1 < length ? (random.below(12) == 0 ? ", " : " ") : "";
    }
    text += random.below(8) == 0 ? ".\n\n" : ". ";
  }
  text.resize(bytes);
  return text;
}

std::string sample_chinese(size_t bytes) {
  Random random;
  // Words of one to three characters, so that pairs repeat as they do in a language.
  std::vector<std::string> words;
  while (words.size() < 8000) {
    std::string word;
    for (size_t n = 1 + random.below(3); n > 0; --n) {
      utf8_append(word, kCommonCharacters[random.zipf(kCommonCharacters.size())]);
    }
    words.push_back(std::move(word));
  }
  std::string text;
  while (text.size() < bytes) {
    for (size_t n = 3 + random.below(12); n > 0; --n) text += words[random.zipf(words.size())];
    text += random.below(3) == 0 ? "。" : "，";
    if (random.below(20) == 0) text += "\n";
  }
  text.resize(bytes - utf8_incomplete_suffix(std::string_view(text).substr(0, bytes)));
  return text;
}

std::string sample_code(size_t bytes) {
  // $ stands for a name, # for a number.
  static constexpr std::string_view kLines[] = {
      "    if ($ != nullptr && $->size() > #) {\n",
      "        for (int i = 0; i < $.count; ++i) $[i] += 0x#;\n",
      "    // $ $ is $\n",
      "    const auto $ = $($, \"$\");\n",
      "        return $ * 2.5f - $;\n",
      "    }\n",
      "}\n\nstatic int $(const std::string& $, size_t $) {\n",
  };
  Random random;
  const std::vector<std::string> words = make_words(random);
  const auto append_name = [&](std::string& text) {
    text += words[random.zipf(words.size())];
    const bool camel = random.below(2) == 0;
    for (size_t n = random.below(3); n > 0; --n) {
      const std::string& next = words[random.zipf(words.size())];
      if (!camel) text += '_';
      text += camel ? capital(next) : next;
    }
  };
  std::string text;
  while (text.size() < bytes) {
    for (const char c : kLines[random.below(std::size(kLines))]) {
      if (c == '$') {
        append_name(text);
      } else if (c == '#') {
        text += std::to_string(random.below(300));
      } else {
        text += c;
      }
    }
  }
  text.resize(bytes);
  return text;
}

}  // namespace tinyvllm
