#include "text/bpe.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/byte_token.h"
#include "text/merging.h"

namespace tinyvllm {

Bpe::Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options, size_t id_count)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      options_(std::move(options)),
      id_count_(id_count),
      whole_(new std::atomic<Whole>[id_count]) {
  for (size_t id = 0; id < id_count; ++id) whole_[id] = Whole::kUnknown;
  for (size_t byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary_.find(std::string_view(&text, 1));
    fallback_ids_[byte] = vocabulary_.find(make_byte_token(static_cast<uint8_t>(byte)));
  }
  can_cut_ = knows_every_character();
  if (can_cut_) vocabulary_.for_each([&](std::string_view text) { seams_.add_token(text); });
}

bool Bpe::knows_every_character() const {
  if (!options_.continuing_prefix.empty() || !options_.word_suffix.empty()) return false;
  if (!options_.byte_level && !options_.byte_fallback) return false;
  const auto& ids = options_.byte_level ? byte_ids_ : fallback_ids_;
  return std::find(ids.begin(), ids.end(), Vocabulary::kNone) == ids.end();
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  const int32_t id = vocabulary_.find(piece);
  if (id != Vocabulary::kNone && options_.ignore_merges) {
    ids.push_back(id);
  } else if (id == Vocabulary::kNone && can_cut_) {
    merge_parts(piece, ids);
  } else {
    encode_part(piece, id, ids);
  }
}

void Bpe::merge_parts(std::string_view piece, std::vector<int32_t>& ids) const {
  for (size_t begin = 0; begin < piece.size();) {
    const size_t end = seams_.next_cut(piece, begin);
    const std::string_view part = piece.substr(begin, end - begin);
    encode_part(part, vocabulary_.find(part), ids);
    begin = end;
  }
}

// `id`: of the token that the part spells, or kNone.
void Bpe::encode_part(std::string_view part, int32_t id, std::vector<int32_t>& ids) const {
  if (id == Vocabulary::kNone) return merge(part, ids);
  std::atomic<Whole>& whole = whole_[static_cast<size_t>(id)];
  if (whole.load(std::memory_order_relaxed) == Whole::kYes) {
    ids.push_back(id);
    return;
  }
  const size_t before = ids.size();
  merge(part, ids);
  const bool is_whole = ids.size() == before + 1 && ids.back() == id;
  whole.store(is_whole ? Whole::kYes : Whole::kNo, std::memory_order_relaxed);
}

void Bpe::merge(std::string_view piece, std::vector<int32_t>& ids) const {
  std::vector<int32_t> symbols;
  start_symbols(piece, symbols);
  merge_symbols(merges_, symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void Bpe::start_symbols(std::string_view piece, std::vector<int32_t>& symbols) const {
  symbols.reserve(piece.size());
  bool unknown_waits = false;  // unknowns are put down late, so that the next one can join them
  for (size_t at = 0; at < piece.size();) {
    const size_t length =
        options_.byte_level ? 1 : static_cast<size_t>(utf8_sequence_length(piece.substr(at)));
    const std::string_view character = piece.substr(at, length);
    const int32_t id = find_character(character, at == 0, at + length == piece.size());
    at += length;
    if (id != Vocabulary::kNone) {
      if (unknown_waits) symbols.push_back(options_.unknown);
      unknown_waits = false;
      symbols.push_back(id);
    } else if (options_.byte_fallback && append_bytes(character, symbols)) {
      continue;  // past an unknown that waits: it comes after these bytes, as it was trained
    } else if (options_.unknown != Vocabulary::kNone) {
      if (unknown_waits && !options_.fuse_unknown) symbols.push_back(options_.unknown);
      unknown_waits = true;
    }
  }
  if (unknown_waits) symbols.push_back(options_.unknown);
}

int32_t Bpe::find_character(std::string_view character, bool first, bool last) const {
  if (options_.continuing_prefix.empty() && options_.word_suffix.empty()) {
    if (character.size() == 1) return byte_ids_[static_cast<unsigned char>(character[0])];
    return vocabulary_.find(character);
  }
  std::string text;
  if (!first) text += options_.continuing_prefix;
  text += character;
  if (last) text += options_.word_suffix;
  return vocabulary_.find(text);
}

bool Bpe::append_bytes(std::string_view character, std::vector<int32_t>& symbols) const {
  for (const char byte : character) {
    if (fallback_ids_[static_cast<unsigned char>(byte)] == Vocabulary::kNone) return false;
  }
  for (const char byte : character) {
    symbols.push_back(fallback_ids_[static_cast<unsigned char>(byte)]);
  }
  return true;
}

}  // namespace tinyvllm
