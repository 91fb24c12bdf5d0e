#include "text/decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/byte_token.h"
#include "text/replace.h"

namespace tinyvllm {
namespace {

using Tokens = DecodeStage::Tokens;

class TokenwiseStage : public DecodeStage {
 public:
  explicit TokenwiseStage(const DecodeStep& step) : step_(step) {}
  void push(std::string token, Tokens& out) override {
    out.push_back(step_.piece(std::move(token)));
  }

 private:
  const DecodeStep& step_;
};

// A step that treats every token alike.
class TokenwiseStep : public DecodeStep {
 public:
  std::unique_ptr<DecodeStage> start() const override {
    return std::make_unique<TokenwiseStage>(*this);
  }
};

class ReplaceStep : public TokenwiseStep {
 public:
  ReplaceStep(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  std::string piece(std::string token) const override {
    replace_all(token, from_, to_);
    return token;
  }

 private:
  std::string from_, to_;
};

class RegexReplaceStep : public TokenwiseStep {
 public:
  RegexReplaceStep(Regex regex, std::string to) : regex_(std::move(regex)), to_(std::move(to)) {}
  std::string piece(std::string token) const override { return regex_.replaced(token, to_); }

 private:
  Regex regex_;
  std::string to_;
};

class ByteLevelStep : public DecodeStep {
 public:
  std::unique_ptr<DecodeStage> start() const override { return std::make_unique<Stage>(); }
  std::string piece(std::string token) const override {
    std::string bytes;
    return from_byte_alphabet(token, bytes) ? bytes : token;
  }

 private:
  class Stage : public DecodeStage {
   public:
    void push(std::string token, Tokens& out) override {
      if (!from_byte_alphabet(token, pending_)) pending_ += token;
      const size_t ready = pending_.size() - utf8_incomplete_suffix(pending_);
      out.push_back(utf8_replace_invalid(std::string_view(pending_).substr(0, ready)));
      pending_.erase(0, ready);
    }
    void finish(Tokens& out) override {
      out.push_back(utf8_replace_invalid(pending_));
      pending_.clear();
    }

   private:
    std::string pending_;  // the beginning of a character: at most three bytes between calls
  };
};

class ByteFallbackStep : public DecodeStep {
 public:
  explicit ByteFallbackStep(bool lenient) : lenient_(lenient) {}
  std::unique_ptr<DecodeStage> start() const override { return std::make_unique<Stage>(lenient_); }
  std::string piece(std::string token) const override {
    const std::optional<uint8_t> byte = parse_byte_token(token);
    return byte.has_value() ? std::string(1, static_cast<char>(*byte)) : token;
  }

 private:
  class Stage : public DecodeStage {
   public:
    explicit Stage(bool lenient) : lenient_(lenient) {}

    void push(std::string token, Tokens& out) override {
      const std::optional<uint8_t> byte = parse_byte_token(token);
      if (!byte.has_value()) {
        finish(out);
        out.push_back(std::move(token));
        return;
      }
      run_ += static_cast<char>(*byte);
      // A lenient run can only be wrong where it already is; a strict one is judged at its end.
      if (lenient_) release(run_.size() - utf8_incomplete_suffix(run_), out);
    }

    void finish(Tokens& out) override {
      if (run_.empty()) return;
      if (lenient_ || is_utf8(run_)) {
        release(run_.size(), out);
      } else {
        std::string replaced;
        for (size_t i = 0; i < run_.size(); ++i) utf8_append(replaced, kReplacementCharacter);
        out.push_back(std::move(replaced));
        run_.clear();
      }
    }

   private:
    // One U+FFFD for each byte that belongs to no character.
    void release(size_t count, Tokens& out) {
      std::string text;
      for (size_t at = 0; at < count;) {
        const int length = utf8_sequence_length(std::string_view(run_).substr(at, count - at));
        if (length == 0) {
          utf8_append(text, kReplacementCharacter);
          at += 1;
        } else {
          text.append(run_, at, static_cast<size_t>(length));
          at += static_cast<size_t>(length);
        }
      }
      run_.erase(0, count);
      if (!text.empty()) out.push_back(std::move(text));
    }

    const bool lenient_;
    std::string run_;
  };

  bool lenient_;
};

class StripStep : public DecodeStep {
 public:
  StripStep(char32_t content, size_t start, size_t stop, bool whole)
      : start_(start), stop_(stop), whole_(whole) {
    utf8_append(content_, content);
  }

  std::unique_ptr<DecodeStage> start() const override {
    if (whole_) return std::make_unique<WholeStage>(*this);
    return std::make_unique<TokenwiseStage>(*this);
  }

  std::string piece(std::string token) const override {
    return whole_ ? token : strip_end(strip_start(std::move(token), start_));
  }

 private:
  std::string strip_start(std::string token, size_t times) const {
    size_t cut = 0;
    for (; times > 0 && std::string_view(token).substr(cut).starts_with(content_); --times) {
      cut += content_.size();
    }
    return token.substr(cut);
  }
  std::string strip_end(std::string token) const {
    for (size_t i = 0; i < stop_ && token.ends_with(content_); ++i) {
      token.resize(token.size() - content_.size());
    }
    return token;
  }

  // Strips the beginning while it is there, and holds back what may turn out to be the end.
  class WholeStage : public DecodeStage {
   public:
    explicit WholeStage(const StripStep& step) : step_(step), left_(step.start_) {}
    void push(std::string token, Tokens& out) override {
      if (left_ > 0 && !token.empty()) {
        const size_t before = token.size();
        token = step_.strip_start(std::move(token), left_);
        left_ = token.empty() ? left_ - before / step_.content_.size() : 0;
      }
      held_ += token;
      size_t keep = 0;
      const size_t unit = step_.content_.size();
      while (keep < step_.stop_ * unit &&
             std::string_view(held_).substr(0, held_.size() - keep).ends_with(step_.content_)) {
        keep += unit;
      }
      out.push_back(held_.substr(0, held_.size() - keep));
      held_.erase(0, held_.size() - keep);
    }
    void finish(Tokens& out) override {
      out.push_back(step_.strip_end(held_));
      held_.clear();
    }

   private:
    const StripStep& step_;
    size_t left_;
    std::string held_;
  };

  std::string content_;
  size_t start_, stop_;
  bool whole_;
};

class MetaspaceStep : public DecodeStep {
 public:
  MetaspaceStep(std::string mark, bool drop_first)
      : mark_(std::move(mark)), drop_first_(drop_first) {}
  std::unique_ptr<DecodeStage> start() const override { return std::make_unique<Stage>(*this); }
  std::string piece(std::string token) const override {
    replace_all(token, mark_, " ");
    return token;
  }

 private:
  class Stage : public DecodeStage {
   public:
    explicit Stage(const MetaspaceStep& step) : step_(step), first_(step.drop_first_) {}
    void push(std::string token, Tokens& out) override {
      if (first_) replace_all(token, step_.mark_, "");
      first_ = false;
      out.push_back(step_.piece(std::move(token)));
    }

   private:
    const MetaspaceStep& step_;
    bool first_;
  };

  std::string mark_;
  bool drop_first_;
};

class SentencePieceStep : public DecodeStep {
 public:
  SentencePieceStep(bool strip_first, bool strip_all)
      : strip_first_(strip_first), strip_all_(strip_all) {}
  std::unique_ptr<DecodeStage> start() const override { return std::make_unique<Stage>(*this); }
  std::string piece(std::string token) const override {
    replace_all(token, kMark, " ");
    return token;
  }

 private:
  static constexpr std::string_view kMark = "▁";

  class Stage : public DecodeStage {
   public:
    explicit Stage(const SentencePieceStep& step) : step_(step), at_start_(step.strip_first_) {}
    void push(std::string token, Tokens& out) override {
      const bool stripped = at_start_ && token.starts_with(kMark);
      if (stripped) token.erase(0, kMark.size());
      at_start_ = at_start_ && token.empty() && (step_.strip_all_ || !stripped);
      out.push_back(step_.piece(std::move(token)));
    }

   private:
    const SentencePieceStep& step_;
    bool at_start_;
  };

  bool strip_first_, strip_all_;
};

// Holds the last token back: whether its suffix is a space depends on whether another follows.
class WordSuffixStep : public DecodeStep {
 public:
  explicit WordSuffixStep(std::string suffix) : suffix_(std::move(suffix)) {}
  std::unique_ptr<DecodeStage> start() const override { return std::make_unique<Stage>(*this); }
  std::string piece(std::string token) const override {
    replace_all(token, suffix_, " ");
    return token;
  }

 private:
  class Stage : public DecodeStage {
   public:
    explicit Stage(const WordSuffixStep& step) : step_(step) {}
    void push(std::string token, Tokens& out) override {
      if (last_.has_value()) out.push_back(step_.piece(std::move(*last_)));
      last_ = std::move(token);
    }
    void finish(Tokens& out) override {
      if (!last_.has_value()) return;
      replace_all(*last_, step_.suffix_, "");
      out.push_back(std::move(*last_));
      last_.reset();
    }

   private:
    const WordSuffixStep& step_;
    std::optional<std::string> last_;
  };

  std::string suffix_;
};

class JoiningStep : public DecodeStep {
 public:
  std::unique_ptr<DecodeStage> start() const override { return std::make_unique<Stage>(); }
  std::string piece(std::string token) const override { return str_cat(" ", token); }

 private:
  class Stage : public DecodeStage {
   public:
    void push(std::string token, Tokens& out) override {
      if (!first_) out.push_back(" ");
      first_ = false;
      out.push_back(std::move(token));
    }

   private:
    bool first_ = true;
  };
};

}  // namespace

std::unique_ptr<DecodeStep> make_byte_level_decoder() { return std::make_unique<ByteLevelStep>(); }

std::unique_ptr<DecodeStep> make_byte_fallback_decoder(bool lenient) {
  return std::make_unique<ByteFallbackStep>(lenient);
}

std::unique_ptr<DecodeStep> make_replace_decoder(std::string from, std::string to) {
  return std::make_unique<ReplaceStep>(std::move(from), std::move(to));
}

std::unique_ptr<DecodeStep> make_regex_replace_decoder(Regex regex, std::string to) {
  return std::make_unique<RegexReplaceStep>(std::move(regex), std::move(to));
}

std::unique_ptr<DecodeStep> make_strip_decoder(char32_t content, size_t start, size_t stop,
                                               bool whole) {
  return std::make_unique<StripStep>(content, start, stop, whole);
}

std::unique_ptr<DecodeStep> make_metaspace_decoder(std::string mark, bool drop_first) {
  return std::make_unique<MetaspaceStep>(std::move(mark), drop_first);
}

std::unique_ptr<DecodeStep> make_sentencepiece_decoder(bool strip_first, bool strip_all) {
  return std::make_unique<SentencePieceStep>(strip_first, strip_all);
}

std::unique_ptr<DecodeStep> make_word_suffix_decoder(std::string suffix) {
  return std::make_unique<WordSuffixStep>(std::move(suffix));
}

std::unique_ptr<DecodeStep> make_joining_decoder() { return std::make_unique<JoiningStep>(); }

}  // namespace tinyvllm
