#include "text/bpe.h"

#include <utility>

#include "text/merging.h"

namespace tinyvllm {

Bpe::Bpe(Vocabulary vocabulary, MergeTable merges, const BpeOptions& options, size_t id_count)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      options_(options),
      whole_(new std::atomic<Whole>[id_count]) {
  for (size_t id = 0; id < id_count; ++id) whole_[id] = Whole::kUnknown;
  for (size_t byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary_.find(std::string_view(&text, 1));
  }
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  const int32_t id = vocabulary_.find(piece);
  if (id == Vocabulary::kNone) return merge(piece, ids);
  std::atomic<Whole>& whole = whole_[static_cast<size_t>(id)];
  if (options_.ignore_merges || whole.load(std::memory_order_relaxed) == Whole::kYes) {
    ids.push_back(id);
    return;
  }
  const size_t before = ids.size();
  merge(piece, ids);
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
  for (const char byte : piece) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id != Vocabulary::kNone) symbols.push_back(id);
  }
}

}  // namespace tinyvllm
