// The memory that choosing from one row takes, cut from a piece of the arena: one per thread, about
// seven floats for each token of the vocabulary. Nothing in it outlives the row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "sample/cpu/kernels.h"

namespace tinyvllm::cpu_sampler {

// How a block of a row stands to the logits that came: untouched, changed in a copy, or all out.
enum class BlockState : uint8_t { kRaw, kEdited, kOut };

struct Scratch {
  int64_t vocabulary;
  int64_t blocks;

  // Of the row (row.h): [blocks], and edited copies [vocabulary].
  BlockState* states;
  float* maxima;
  uint64_t* masses;
  float* ranked_maxima;
  float* edited;

  // Of the tokens still in question (candidates.h): [vocabulary] each, and again for those around a
  // cut.
  Columns candidates;
  Columns members;

  uint64_t* seen;  // a bit for each token of the vocabulary

  // Without memory it only measures.
  Scratch(void* memory, int64_t vocabulary_size)
      : vocabulary(vocabulary_size),
        blocks((vocabulary_size + kBlock - 1) / kBlock),
        memory_(static_cast<char*>(memory)) {
    take(masses, blocks);
    take(seen, (vocabulary + 63) / 64);
    take(maxima, blocks);
    take(ranked_maxima, blocks);
    take(states, blocks);
    take(edited, vocabulary);
    for (Columns* columns : {&candidates, &members}) {
      take(columns->values, vocabulary);
      take(columns->ids, vocabulary);
      take(columns->weights, vocabulary);
    }
  }

  static size_t bytes(int64_t vocabulary) { return Scratch(nullptr, vocabulary).used_; }

 private:
  static constexpr int64_t kSlack = 8;  // kernels read and write whole vectors

  template <class T>
  void take(T*& array, int64_t count) {
    array = memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + used_);
    used_ += (static_cast<size_t>(count + kSlack) * sizeof(T) + 63) / 64 * 64;
  }

  char* memory_;
  size_t used_ = 0;
};

}  // namespace tinyvllm::cpu_sampler
