#include "text/pipeline.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace tinyvllm {
namespace {

// Where the trusted parts of a text went when it was normalized: a boundary lies behind what the
// text up to it becomes. If that is not how the whole begins (a character was composed across it,
// or the boundary is inside one), or there are more boundaries than are worth the work, nothing is
// trusted.
TrustedText normalize_trusted(const NormalizerChain& normalizers, std::string_view text,
                              size_t offset, const std::string& normalized,
                              const TrustedText& trusted) {
  constexpr size_t kMostSpans = 64;
  TrustedText result;
  result.control_words = trusted.control_words;
  for (const Span& span : trusted.spans) {
    if (span.end <= offset || span.begin >= offset + text.size()) continue;
    Span moved;
    for (const auto& [from, to] : {std::pair(span.begin, &moved.begin), {span.end, &moved.end}}) {
      const size_t place = std::min(std::max(from, offset) - offset, text.size());
      std::string before(text.substr(0, place));
      if (utf8_incomplete_suffix(before) > 0) return {{}, trusted.control_words};
      apply_all(normalizers, before);
      if (!normalized.starts_with(before)) return {{}, trusted.control_words};
      *to = before.size();
    }
    if (!moved.empty()) result.spans.push_back(moved);
    if (result.spans.size() > kMostSpans) return {{}, trusted.control_words};
  }
  return result;
}

}  // namespace

std::vector<int32_t> Pipeline::encode(std::string_view text, const EncodeOptions& options) const {
  if (!is_utf8(text)) {
    EncodeOptions repaired = options;
    const TrustedText nothing{{}, options.trusted ? options.trusted->control_words : nullptr};
    if (options.trusted != nullptr) repaired.trusted = &nothing;  // the spans are of other bytes
    return encode(utf8_replace_invalid(text), repaired);
  }
  std::vector<int32_t> ids;
  if (options.add_special) ids = parts_.prefix_ids;
  const AddedTokens::Rules rules = {options.parse_special, options.trusted};
  for (const AddedTokens::Part& part : parts_.added.split(text, false, rules)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      encode_plain(text, part.span, options, ids);
    }
  }
  if (options.add_special) {
    ids.insert(ids.end(), parts_.suffix_ids.begin(), parts_.suffix_ids.end());
  }
  return ids;
}

void Pipeline::encode_plain(std::string_view text, const Span& part, const EncodeOptions& options,
                            std::vector<int32_t>& ids) const {
  const bool starts_input = part.begin == 0;
  std::string normalized(part.of(text));
  apply_all(parts_.normalizers, normalized);
  AddedTokens::Rules rules = {options.parse_special, options.trusted, part.begin};
  TrustedText moved;
  if (options.trusted != nullptr && normalized != part.of(text) && parts_.added.has_normalized()) {
    moved = normalize_trusted(parts_.normalizers, part.of(text), part.begin, normalized,
                              *options.trusted);
    rules = {options.parse_special, &moved};
  }
  const auto parts = parts_.added.split(normalized, true, rules);
  if (parts.size() == 1 && parts[0].id < 0) {
    encode_normalized(std::move(normalized), starts_input, ids);
    return;
  }
  for (const AddedTokens::Part& part : parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      encode_normalized(std::string(part.span.of(normalized)), starts_input && part.span.begin == 0,
                        ids);
    }
  }
}

void Pipeline::encode_normalized(std::string text, bool starts_input,
                                 std::vector<int32_t>& ids) const {
  Pieces pieces;
  pieces.spans = {{0, text.size()}};
  pieces.text = std::move(text);
  pieces.starts_input = starts_input;
  for (const auto& step : parts_.pretokenizers) step->split(pieces);
  for (const Span& span : pieces.spans) parts_.model->encode(span.of(pieces.text), ids);
}

bool Pipeline::is_shown(int32_t id, bool skip_special) const {
  return parts_.texts.has(id) && !(skip_special && parts_.special[static_cast<size_t>(id)]);
}

// Runs a token through a stage for each step; what the last one hands on is text.
class Pipeline::Stream : public TokenStream {
 public:
  Stream(const Pipeline& pipeline, bool skip_special)
      : pipeline_(pipeline), skip_special_(skip_special) {
    start();
  }

  void push(int32_t id, std::string& out) override {
    if (pipeline_.is_shown(id, skip_special_)) {
      feed(0, std::string(pipeline_.parts_.texts[id]), out);
    } else if (pipeline_.parts_.left_out_ends_bytes) {
      feed(0, "", out);
    }
  }

  void finish(std::string& out) override {
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      DecodeStage::Tokens tokens;
      stages_[stage]->finish(tokens);
      for (std::string& token : tokens) feed(stage + 1, std::move(token), out);
    }
    start();
  }

 private:
  void start() {
    stages_.clear();
    for (const auto& step : pipeline_.parts_.decoders) stages_.push_back(step->start());
  }

  void feed(size_t stage, std::string token, std::string& out) {
    if (stage == stages_.size()) {
      out += token;
      return;
    }
    DecodeStage::Tokens tokens;
    stages_[stage]->push(std::move(token), tokens);
    for (std::string& next : tokens) feed(stage + 1, std::move(next), out);
  }

  const Pipeline& pipeline_;
  const bool skip_special_;
  std::vector<std::unique_ptr<DecodeStage>> stages_;
};

std::string Pipeline::decode(const std::vector<int32_t>& ids, bool skip_special) const {
  std::string text;
  Stream stream(*this, skip_special);
  for (const int32_t id : ids) stream.push(id, text);
  stream.finish(text);
  return text;
}

std::string Pipeline::piece(int32_t id, bool skip_special) const {
  if (!is_shown(id, skip_special)) return "";
  std::string token(parts_.texts[id]);
  for (const auto& step : parts_.decoders) token = step->piece(std::move(token));
  return token;
}

std::unique_ptr<TokenStream> Pipeline::stream(bool skip_special) const {
  return std::make_unique<Stream>(*this, skip_special);
}

std::vector<std::string> Pipeline::added_words() const {
  std::vector<std::string> words;
  for (const AddedToken& token : parts_.added.tokens()) {
    if (!parts_.added.is_special(token.content)) words.push_back(token.content);
  }
  return words;
}

bool Pipeline::is_end(int32_t id) const {
  return std::binary_search(parts_.end_ids.begin(), parts_.end_ids.end(), id);
}

}  // namespace tinyvllm
