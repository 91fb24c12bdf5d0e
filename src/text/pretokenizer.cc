#include "text/pretokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/byte_alphabet.h"

namespace tinyvllm {
namespace {

// A stretch of a piece that is a match, or one between matches.
struct Part {
  Span span;
  bool is_match = false;
};

// Joins `part` to the last of `parts`, or begins a new one.
void join_or_add(std::vector<Span>& parts, const Span& part, bool join) {
  if (join && !parts.empty()) {
    parts.back().end = part.end;
  } else {
    parts.push_back(part);
  }
}

std::vector<Span> apply_behavior(const std::vector<Part>& parts, SplitBehavior behavior) {
  std::vector<Span> pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const bool after_match = i > 0 && parts[i - 1].is_match;
    switch (behavior) {
      case SplitBehavior::kRemoved:
        if (!part.is_match) pieces.push_back(part.span);
        break;
      case SplitBehavior::kIsolated:
        pieces.push_back(part.span);
        break;
      case SplitBehavior::kContiguous:
        join_or_add(pieces, part.span, i > 0 && part.is_match == after_match);
        break;
      case SplitBehavior::kMergedWithPrevious:
        join_or_add(pieces, part.span, part.is_match && !after_match);
        break;
      case SplitBehavior::kMergedWithNext:  // of several in a row, the last
        join_or_add(pieces, part.span, !part.is_match && after_match);
        break;
    }
  }
  return pieces;
}

class Split : public PreTokenizer {
 public:
  Split(std::unique_ptr<Pattern> pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void split(Pieces& pieces) const override {
    std::vector<Span> result;
    std::vector<Span> matches;
    std::vector<Part> parts;
    result.reserve(pieces.spans.size());
    for (const Span& span : pieces.spans) {
      matches.clear();
      pattern_->find_all(span.of(pieces.text), matches);
      if (behavior_ == SplitBehavior::kIsolated) {
        isolate(span, matches, result);
        continue;
      }
      parts.clear();
      list_parts(span, matches, parts);
      for (const Span& piece : apply_behavior(parts, behavior_)) {
        if (!piece.empty()) result.push_back(piece);
      }
    }
    pieces.spans = std::move(result);
  }

 private:
  static void isolate(const Span& span, const std::vector<Span>& matches,
                      std::vector<Span>& result) {
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

  void list_parts(const Span& span, const std::vector<Span>& matches,
                  std::vector<Part>& parts) const {
    size_t done = span.begin;
    for (const Span& match : matches) {
      const Span found = {span.begin + match.begin, span.begin + match.end};
      if (found.begin > done) parts.push_back({{done, found.begin}, invert_});
      parts.push_back({found, !invert_});
      done = found.end;
    }
    if (span.end > done) parts.push_back({{done, span.end}, invert_});
  }

  std::unique_ptr<Pattern> pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(size_t characters) : characters_(characters) {}

  void split(Pieces& pieces) const override {
    std::vector<Span> result;
    for (const Span& span : pieces.spans) {
      size_t begin = span.begin;
      size_t count = 0;
      for (size_t at = span.begin; at < span.end;) {
        utf8_next(pieces.text, at);
        count += 1;
        if (count < characters_ && at < span.end) continue;
        result.push_back({begin, at});
        begin = at;
        count = 0;
      }
    }
    pieces.spans = std::move(result);
  }

 private:
  size_t characters_;
};

// A step that rewrites each piece, and perhaps cuts it: works on a new text, piece by piece.
class Rewrite : public PreTokenizer {
 public:
  void split(Pieces& pieces) const override {
    Pieces result;
    result.starts_input = pieces.starts_input;
    result.text.reserve(pieces.text.size() + pieces.text.size() / 2);
    for (const Span& span : pieces.spans) {
      const bool is_first = pieces.starts_input && span.begin == 0;
      rewrite(span.of(pieces.text), is_first, result);
    }
    pieces = std::move(result);
  }

 protected:
  // Appends the piece's new text to out.text and its spans to out.spans.
  virtual void rewrite(std::string_view piece, bool is_first, Pieces& out) const = 0;
};

class PrefixSpace : public Rewrite {
  void rewrite(std::string_view piece, bool, Pieces& out) const override {
    const size_t begin = out.text.size();
    if (!piece.starts_with(' ')) out.text += ' ';
    out.text += piece;
    out.spans.push_back({begin, out.text.size()});
  }
};

class ByteAlphabetPieces : public Rewrite {
  void rewrite(std::string_view piece, bool, Pieces& out) const override {
    const size_t begin = out.text.size();
    out.text += to_byte_alphabet(piece);
    out.spans.push_back({begin, out.text.size()});
  }
};

class Metaspace : public Rewrite {
 public:
  explicit Metaspace(MetaspaceOptions options) : options_(std::move(options)) {}

 private:
  void rewrite(std::string_view piece, bool is_first, Pieces& out) const override {
    const std::string& mark = options_.replacement;
    const bool wanted = options_.prepend == MetaspaceOptions::Prepend::kAlways ||
                        (options_.prepend == MetaspaceOptions::Prepend::kFirst && is_first);
    size_t begin = out.text.size();
    if (wanted && !piece.starts_with(' ') && !piece.starts_with(mark)) out.text += mark;
    for (size_t at = 0; at < piece.size();) {
      const bool is_space = piece[at] == ' ';
      const bool is_mark = is_space || piece.substr(at).starts_with(mark);
      if (!is_mark) {
        out.text += piece[at++];
        continue;
      }
      if (options_.split && out.text.size() > begin) {
        out.spans.push_back({begin, out.text.size()});
        begin = out.text.size();
      }
      out.text += mark;
      at += is_space ? 1 : mark.size();
    }
    if (out.text.size() > begin) out.spans.push_back({begin, out.text.size()});
  }

  MetaspaceOptions options_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_split(std::unique_ptr<Pattern> pattern, SplitBehavior behavior,
                                         bool invert) {
  return std::make_unique<Split>(std::move(pattern), behavior, invert);
}

std::unique_ptr<PreTokenizer> make_fixed_length(size_t characters) {
  return std::make_unique<FixedLength>(characters);
}

std::unique_ptr<PreTokenizer> make_prefix_space() { return std::make_unique<PrefixSpace>(); }

std::unique_ptr<PreTokenizer> make_byte_alphabet_pieces() {
  return std::make_unique<ByteAlphabetPieces>();
}

std::unique_ptr<PreTokenizer> make_metaspace(MetaspaceOptions options) {
  return std::make_unique<Metaspace>(std::move(options));
}

}  // namespace tinyvllm
