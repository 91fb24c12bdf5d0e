// Patterns in the dialect of tokenizer files; the judge of whole tokenizers is tokenizer_check.py.
#include "text/regex.h"

#include <gtest/gtest.h>
#include <string>

#include "text/regex_syntax.h"

namespace tinyvllm {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  Result<Regex> regex = Regex::compile(pattern);
  EXPECT_TRUE(regex.ok()) << regex.message();
  std::vector<std::string> found;
  if (!regex.ok()) return found;
  std::vector<Span> spans;
  regex.value().find_all(text, spans);
  for (const Span& span : spans) found.emplace_back(span.of(text));
  return found;
}
using Strings = std::vector<std::string>;

TEST(Regex, TheDialectIsRuby) {
  EXPECT_EQ(matches(R"(\d{1,3}+)", "1234567"), (Strings{"1234567"}));  // not possessive: repeated
  EXPECT_EQ(matches(R"(a{,2}b)", "aaab"), (Strings{"aab"}));
  EXPECT_EQ(matches(R"(a{2}?)", "aaa"), (Strings{"aa", ""}));
  EXPECT_EQ(matches(R"([a-z&&[^aeiou]]+)", "tokenizer"), (Strings{"t", "k", "n", "z", "r"}));
  EXPECT_EQ(matches(R"([^a[bc]]+)", "xaybzc"), (Strings{"x", "y", "z"}));
  EXPECT_EQ(matches(R"([\p{Han}&&\p{L}]+)", "漢字a"), (Strings{"漢字"}));
  EXPECT_EQ(matches(R"(\h+)", "xfA9g"), (Strings{"fA9"}));
  EXPECT_EQ(matches(R"(\s+$)", "a \nb  "), (Strings{" ", "  "}));  // $ is the end of any line
  EXPECT_EQ(matches(R"(^b)", "a\nb"), (Strings{"b"}));
  EXPECT_EQ(matches("(?m:a.b)", "a\nb"), (Strings{"a\nb"}));
  EXPECT_EQ(matches(R"(\w+)", "a\u0301_1 ²"), (Strings{"a\u0301_1", "²"}));
  EXPECT_EQ(matches(R"(\bb\b)", "b ab éb"), (Strings{"b"}));
  EXPECT_EQ(matches(R"(\v)", "\n\v"), (Strings{"\v"}));
  EXPECT_EQ(matches("[]a]", "]a"), (Strings{"]", "a"}));
  EXPECT_EQ(matches(R"([\w-]+)", "a-b c"), (Strings{"a-b", "c"}));
}

// Characters that PCRE2 may not know, in patterns that name others.
TEST(Regex, UnknownCharactersLieWhereTheyAre) {
  for (const Strings& inside : {Strings{"\u098E\u09FF\u0907"}, Strings{"\u0933\u1AEB\u0E35"}}) {
    EXPECT_EQ(matches("[ࠀ-一]+", inside.front()), inside);  // the ones in the middle
  }
  EXPECT_EQ(matches("[ࠀ-一]", "\uA7CB"), Strings{});
  EXPECT_EQ(matches(R"([ࠀ-一]|\p{Lu})", "\uA7CB"), (Strings{"\uA7CB"}));
}

TEST(Regex, KnowsUnicode16AndNothingLater) {
  EXPECT_EQ(matches(R"(\p{L})", "\U00031350"), (Strings{"\U00031350"}));    // Unicode 15
  EXPECT_EQ(matches(R"(\p{Han})", "\U0002EBF0"), (Strings{"\U0002EBF0"}));  // Unicode 15.1
  EXPECT_EQ(matches(R"(\p{Nd})", "\U00010D40"), (Strings{"\U00010D40"}));   // Unicode 16
  EXPECT_EQ(matches(R"(\p{L})", "\U000323B0"), Strings{});                  // Unicode 17
  EXPECT_EQ(matches(R"(\s)", "\u180E"), Strings{});  // a space to PCRE2 alone
}

TEST(Regex, RefusesByName) {
  for (const char* bad :
       {"(?<n>a)", R"(\1)", R"(\p{Klingon})", "[[:alpha:]]", R"(\K)", "(?{x})", "a)", "(a", "[a",
        "*a", R"(\xE4)", R"(\x{110000})", "(?x:a b)", "[z-a]", "\\", R"(\p{L)", "(?i)a"}) {
    const Result<Regex> regex = Regex::compile(bad);
    EXPECT_FALSE(regex.ok()) << bad;
    EXPECT_NE(regex.message().find("pattern"), std::string::npos) << regex.message();
  }
  EXPECT_FALSE(Regex::compile("\xFF").ok());
  EXPECT_FALSE(Regex::compile(std::string(1000, '(')).ok());
}

TEST(Regex, AHostilePatternEndsAndCountsAsNoMatch) {
  EXPECT_EQ(matches("(a+)+$", std::string(60, 'a') + "b"), Strings{});
  EXPECT_EQ(matches("(?:a|a)*c", std::string(200, 'a')), Strings{});
}

TEST(Regex, EmptyMatchesCutOnceBetweenCharacters) {
  EXPECT_EQ(matches(R"((?=(\d{3})+(?!\d)))", "1234567"), (Strings{"", ""}));
  EXPECT_EQ(matches("", "é"), (Strings{"", ""}));
}

TEST(Regex, QuotingMatchesTheTextItself) {
  const std::string text = "a.b*[c]\\d(é)\n\t$^|?+{1} #-";
  EXPECT_EQ(matches(quote_pattern(text), text), (Strings{text}));
}

}  // namespace
}  // namespace tinyvllm
