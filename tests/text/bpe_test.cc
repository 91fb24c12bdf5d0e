// Byte-pair encoding against its definition: merge the best pair, again and again.
#include "text/bpe.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>

#include "base/utf8.h"
#include "text/merging.h"

namespace tinyvllm {
namespace {

struct Model {
  std::vector<std::string> tokens;
  std::map<std::pair<int32_t, int32_t>, Merge> merges;

  std::vector<PairMerge> list() const {
    std::vector<PairMerge> list;
    for (const auto& [pair, merge] : merges) list.push_back({pair.first, pair.second, merge});
    return list;
  }
};

// Random merges over an alphabet of bytes (given as single tokens): what training leaves behind.
Model random_model(std::mt19937& random, const std::string& alphabet, int merges) {
  Model model;
  for (const char byte : alphabet) model.tokens.emplace_back(1, byte);
  for (int i = 0; i < merges; ++i) {
    const auto left = static_cast<int32_t>(random() % model.tokens.size());
    const auto right = static_cast<int32_t>(random() % model.tokens.size());
    const std::string joined =
        model.tokens[static_cast<size_t>(left)] + model.tokens[static_cast<size_t>(right)];
    auto found = std::find(model.tokens.begin(), model.tokens.end(), joined);
    if (found == model.tokens.end()) found = model.tokens.insert(found, joined);
    const auto id = static_cast<int32_t>(found - model.tokens.begin());
    model.merges.try_emplace({left, right}, Merge{static_cast<uint32_t>(i), id});
  }
  return model;
}

std::vector<int32_t> merge_by_definition(const Model& model, std::vector<int32_t> symbols) {
  while (true) {
    size_t best = symbols.size();
    Merge best_merge;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = model.merges.find({symbols[i], symbols[i + 1]});
      if (found == model.merges.end() || found->second.rank >= best_merge.rank) continue;
      best = i;
      best_merge = found->second;
    }
    if (!best_merge.possible()) return symbols;
    symbols[best] = best_merge.id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merging, FollowsTheDefinitionShortAndLong) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Model model = random_model(random, "abcd", 40);
    const MergeTable table(model.list());
    for (const size_t length : {0u, 1u, 2u, 7u, 31u, 32u, 33u, 34u, 200u}) {
      std::vector<int32_t> symbols;
      for (size_t i = 0; i < length; ++i) symbols.push_back(static_cast<int32_t>(random() % 4));
      const std::vector<int32_t> expected = merge_by_definition(model, symbols);
      merge_symbols(table, symbols);
      EXPECT_EQ(symbols, expected) << "length " << length;
    }
  }
}

// Whole tokens, cuts at seams and the memory of what merges to itself change nothing.
TEST(Bpe, ShortCutsGiveWhatMergingAllGives) {
  std::mt19937 random(2);
  std::string alphabet;
  for (int byte = 0; byte < 256; ++byte) alphabet += static_cast<char>(byte);
  const std::string_view characters[] = {"a", "b", " ", "é", "è", "漢", "字", "😀"};
  for (int round = 0; round < 60; ++round) {
    Model model = random_model(random, alphabet, 0);
    // Merge what the texts are made of, so that tokens begin and end inside characters too.
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (int n = 0; n < 3; ++n) text += characters[random() % std::size(characters)];
      const size_t cut = random() % text.size();
      std::vector<int32_t> symbols;
      for (const char byte : text.substr(cut)) symbols.push_back(static_cast<uint8_t>(byte));
      symbols = merge_by_definition(model, symbols);
      if (symbols.size() < 2) continue;
      const size_t at = random() % (symbols.size() - 1);
      const std::string joined = model.tokens[static_cast<size_t>(symbols[at])] +
                                 model.tokens[static_cast<size_t>(symbols[at + 1])];
      if (std::count(model.tokens.begin(), model.tokens.end(), joined) != 0) continue;
      model.merges[{symbols[at], symbols[at + 1]}] =
          Merge{static_cast<uint32_t>(i), static_cast<int32_t>(model.tokens.size())};
      model.tokens.push_back(joined);
    }
    Vocabulary vocabulary;
    for (size_t id = 0; id < model.tokens.size(); ++id) {
      vocabulary.insert(model.tokens[id], static_cast<int32_t>(id));
    }
    BpeOptions options;
    options.byte_level = true;
    const Bpe bpe(std::move(vocabulary), MergeTable(model.list()), options, model.tokens.size());
    for (int text_round = 0; text_round < 40; ++text_round) {
      std::string text;
      for (size_t n = 1 + random() % 30; n > 0; --n) {
        text += characters[random() % std::size(characters)];
      }
      std::vector<int32_t> symbols, ids;
      for (const char byte : text) symbols.push_back(static_cast<uint8_t>(byte));
      bpe.encode(text, ids);
      EXPECT_EQ(ids, merge_by_definition(model, symbols)) << text;
    }
  }
}

TEST(Vocabulary, HoldsShortAndLongStringsAndTheLastIdOfEach) {
  Vocabulary vocabulary;
  std::vector<std::string> texts = {""};
  for (int length = 1; length < 40; ++length) {
    texts.push_back(std::string(static_cast<size_t>(length), 'x'));
    texts.push_back(std::string(static_cast<size_t>(length), '\0'));
  }
  for (size_t i = 0; i < texts.size(); ++i) vocabulary.insert(texts[i], 0);
  for (size_t i = 0; i < texts.size(); ++i) vocabulary.insert(texts[i], static_cast<int32_t>(i));
  EXPECT_EQ(vocabulary.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(vocabulary.find(texts[i]), static_cast<int32_t>(i)) << texts[i].size();
  }
  EXPECT_EQ(vocabulary.find("xy"), Vocabulary::kNone);
  EXPECT_EQ(vocabulary.find(std::string(50, 'x')), Vocabulary::kNone);
}

}  // namespace
}  // namespace tinyvllm
