#include "text/pretokenizer.h"

#include <utility>

namespace tinyvllm {
namespace {

class IsolatingSplit : public PreTokenizer {
 public:
  explicit IsolatingSplit(Regex regex) : regex_(std::move(regex)) {}

  void split(Pieces& pieces) const override {
    std::vector<Span> result;
    std::vector<Span> matches;
    result.reserve(pieces.spans.size());
    for (const Span& span : pieces.spans) {
      matches.clear();
      regex_.find_all(span.of(pieces.text), matches);
      size_t done = span.begin;
      const auto cut = [&](size_t end) {
        if (end > done) result.push_back({done, end});
        done = end;
      };
      for (const Span& match : matches) {
        cut(span.begin + match.begin);
        cut(span.begin + match.end);
      }
      cut(span.end);
    }
    pieces.spans = std::move(result);
  }

 private:
  Regex regex_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_isolating_split(Regex regex) {
  return std::make_unique<IsolatingSplit>(std::move(regex));
}

}  // namespace tinyvllm
