// Watches a growing text for strings that end it. A byte is looked at once per stop string, and
// what could still become one is held back: at most as many bytes as the longest has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tinyvllm {

class StopStrings {
 public:
  // Empty strings are left out. With `include`, the string that was met stays in the text.
  StopStrings(const std::vector<std::string>& strings, bool include);

  // The text so far that is certain and was not handed out before. Once a string was met, the text
  // is over: the string that ends first counts, of several that end together the longest.
  std::string push(std::string_view text);
  std::string finish();  // what was held back

  bool stopped() const { return met_ >= 0; }
  const std::string& met() const;

 private:
  // One string and how far the text's end agrees with it (Knuth, Morris and Pratt).
  struct Watch {
    std::string string;
    std::vector<size_t> fallback;  // [i]: longest proper prefix that also ends string[0..i]
    size_t matched = 0;
  };

  // Whether a string ends with this byte; if so, met_ says which.
  bool advance(char byte);
  void step(Watch& watch, char byte) const;

  std::vector<Watch> watches_;
  const bool include_;
  std::string held_;
  int met_ = -1;  // index into watches_
};

}  // namespace tinyvllm
