// Sums by bin, shared by a block of threads, and the search for the bin where they reach a number.
// Every choice is such a search: tokens fall into bins in the order in which they are taken, best
// first or lowest id first, each with its weight or just as one.
#pragma once

#include <stdint.h>

#include "sample/portable.h"

namespace tinyvllm::block_sampler {

constexpr int kBins = 2048;

struct Found {
  int32_t bin;      // the first at which the sums reach `need`
  uint64_t need;    // of them all
  uint64_t before;  // sum of the bins before it
  uint64_t inside;  // its own
  uint64_t total;
};

struct Bins {
  uint32_t low[kBins], high[kBins];  // halves of sums: cards add 32 bits at once, not 64
  Found found;

  template <class Block>
  TINYVLLM_BLOCK void clear(const Block& block) {
    for (int i = block.thread(); i < kBins; i += block.threads()) low[i] = high[i] = 0;
    block.sync();
  }

  template <class Block>
  TINYVLLM_BLOCK void add(const Block& block, uint32_t bin, uint32_t mass) {
    if (mass == 0) return;
    const uint32_t old = block.add(low + bin, mass);
    if (old + mass < old) block.add(high + bin, 1);
  }

  // By one thread alone.
  TINYVLLM_BLOCK void set(uint32_t bin, uint64_t mass) {
    low[bin] = static_cast<uint32_t>(mass);
    high[bin] = static_cast<uint32_t>(mass >> 32);
  }

  TINYVLLM_BLOCK uint64_t sum(int bin) const {
    return static_cast<uint64_t>(high[bin]) << 32 | low[bin];
  }

  // need_of(total) says how much; it is at least 1 and at most the total.
  template <class Block, class Need>
  TINYVLLM_BLOCK Found find(Block& block, Need need_of) {
    block.sync();
    const int each = (kBins + block.threads() - 1) / block.threads();
    const int first = block.thread() * each;
    const int last = first + each < kBins ? first + each : kBins;
    uint64_t mine = 0;
    for (int bin = first; bin < last; ++bin) mine += sum(bin);
    uint64_t total = 0;
    uint64_t before = block.sum_before(mine, &total);
    const uint64_t need = need_of(total);
    if (before < need && need <= before + mine) {
      int bin = first;
      for (; before + sum(bin) < need; ++bin) before += sum(bin);
      found = {bin, need, before, sum(bin), total};
    }
    block.sync();
    return found;
  }
};

}  // namespace tinyvllm::block_sampler
