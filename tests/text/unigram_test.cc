// The unigram model against trying every way to cut a text.
#include "text/unigram.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace tinyvllm {
namespace {

double best_sum(const std::vector<UnigramToken>& tokens, double unknown, std::string_view text) {
  if (text.empty()) return 0;
  double best = unknown + best_sum(tokens, unknown, text.substr(1));
  for (const UnigramToken& token : tokens) {
    if (token.text.size() == 1 && text.starts_with(token.text)) best = -1e30;  // not unknown
  }
  for (const UnigramToken& token : tokens) {
    if (!text.starts_with(token.text)) continue;
    const double rest = best_sum(tokens, unknown, text.substr(token.text.size()));
    best = std::max(best, token.score + rest);
  }
  return best;
}

TEST(Unigram, FindsTheBestSumOfAll) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> texts = {"<unk>", "a", "b"};  // "c" is unknown
    while (texts.size() < 14) {
      std::string text;
      for (size_t n = 2 + random() % 3; n > 0; --n) text += "abc"[random() % 3];
      if (std::count(texts.begin(), texts.end(), text) == 0) texts.push_back(text);
    }
    std::vector<UnigramToken> tokens;
    for (const std::string& text : texts) {
      tokens.push_back({text, -static_cast<double>(random() % 1000) / 100, {}});
    }
    double worst = 0;
    for (const UnigramToken& token : tokens) worst = std::min(worst, token.score);
    UnigramOptions options;
    options.unknown = 0;
    const Unigram unigram(tokens, options);
    std::string text;
    for (size_t n = 1 + random() % 9; n > 0; --n) text += "abc"[random() % 3];
    std::vector<int32_t> ids;
    unigram.encode(text, ids);
    double sum = 0;
    size_t known = 0;
    for (const int32_t id : ids) {
      if (id != 0) sum += tokens[static_cast<size_t>(id)].score;
      if (id != 0) known += tokens[static_cast<size_t>(id)].text.size();
    }
    sum += static_cast<double>(text.size() - known) * (worst - 10);
    EXPECT_NEAR(sum, best_sum(tokens, worst - 10, text), 1e-9) << text;
  }
}

}  // namespace
}  // namespace tinyvllm
