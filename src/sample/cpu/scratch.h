// The memory that choosing from one row takes, cut from a piece of the arena: one per thread, about
// six floats for each token of the vocabulary. Nothing in it outlives the row.
#pragma once

#include <cstddef>
#include <cstdint>

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

  // Of the tokens still in question (candidates.h): [vocabulary].
  float* logits;
  int32_t* ids;
  uint32_t* weights;
  int32_t* members;

  uint64_t* seen;  // a bit for each token of the vocabulary

  Scratch(void* memory, int64_t vocabulary_size)
      : vocabulary(vocabulary_size), blocks((vocabulary_size + kBlock - 1) / kBlock) {
    char* at = static_cast<char*>(memory);
    take(at, masses, blocks);
    take(at, seen, (vocabulary + 63) / 64);
    take(at, maxima, blocks);
    take(at, ranked_maxima, blocks);
    take(at, edited, vocabulary);
    take(at, logits, vocabulary);
    take(at, ids, vocabulary);
    take(at, weights, vocabulary);
    take(at, members, vocabulary);
    take(at, states, blocks);
    bytes_ = static_cast<size_t>(at - static_cast<char*>(memory));
  }

  static size_t bytes(int64_t vocabulary) { return Scratch(nullptr, vocabulary).bytes_; }

 private:
  template <class T>
  static void take(char*& at, T*& array, int64_t count) {
    array = reinterpret_cast<T*>(at);
    at += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
  }

  size_t bytes_ = 0;
};

}  // namespace tinyvllm::cpu_sampler
