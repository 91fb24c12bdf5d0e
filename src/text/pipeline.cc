#include "text/pipeline.h"

#include <algorithm>

#include "base/utf8.h"

namespace tinyvllm {
namespace {

// Bytes of tokens to text: whole characters leave at once, the beginning of one waits for the rest.
class ByteStream : public TokenStream {
 public:
  ByteStream(const Pipeline& pipeline, bool skip_special)
      : pipeline_(pipeline), skip_special_(skip_special) {}

  void push(int32_t id, std::string& out) override {
    pending_ += pipeline_.piece(id, skip_special_);
    const size_t ready = pending_.size() - utf8_incomplete_suffix(pending_);
    out += utf8_replace_invalid(std::string_view(pending_).substr(0, ready));
    pending_.erase(0, ready);
  }

  void finish(std::string& out) override {
    out += utf8_replace_invalid(pending_);
    pending_.clear();
  }

 private:
  const Pipeline& pipeline_;
  const bool skip_special_;
  std::string pending_;  // at most three bytes between calls
};

}  // namespace

std::vector<int32_t> Pipeline::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  if (!is_utf8(text)) {
    repaired = utf8_replace_invalid(text);
    text = repaired;
  }
  std::vector<int32_t> ids;
  if (options.add_special) ids = parts_.prefix_ids;
  for (const AddedTokens::Part& part : parts_.added.split(text, options.parse_special)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    Pieces pieces;
    pieces.text = part.span.of(text);
    pieces.spans = {{0, pieces.text.size()}};
    for (const auto& step : parts_.pretokenizers) step->split(pieces);
    for (const Span& span : pieces.spans) parts_.model->encode(span.of(pieces.text), ids);
  }
  if (options.add_special) {
    ids.insert(ids.end(), parts_.suffix_ids.begin(), parts_.suffix_ids.end());
  }
  return ids;
}

std::string Pipeline::decode(const std::vector<int32_t>& ids, bool skip_special) const {
  std::string text;
  ByteStream stream(*this, skip_special);
  for (const int32_t id : ids) stream.push(id, text);
  stream.finish(text);
  return text;
}

std::string Pipeline::piece(int32_t id, bool skip_special) const {
  if (id < 0 || id >= vocab_size()) return "";
  if (skip_special && parts_.added.is_special(id)) return "";
  return parts_.token_bytes[static_cast<size_t>(id)];
}

std::unique_ptr<TokenStream> Pipeline::stream(bool skip_special) const {
  return std::make_unique<ByteStream>(*this, skip_special);
}

bool Pipeline::is_end(int32_t id) const {
  return std::find(parts_.end_ids.begin(), parts_.end_ids.end(), id) != parts_.end_ids.end();
}

}  // namespace tinyvllm
