// Steps 9 to 14 of sampler.h by a block of threads that share a row. Nothing is sorted, and filters
// move no tokens: they lower a cut in the ranking (by logit, equals by id), which is found digit by
// digit of the last token's place in it. A first look at the row, in bins of 1/68 octave, tells
// which tokens can be in question at all; where they are few, as mostly, they are listed and only
// the list is looked at from then on.
//
// A block of threads is a template argument, so that tests can run one without a card. It offers
//   thread() of threads(), lane() of lanes() in warp() of warps(): who is asking
//   sync(), add(address, n) → old value, set_bits(address, bits): between threads
//   warp_sum(n), sum_before(n, &total), best(b): over all, known to all
#pragma once

#include "sample/block/best.h"
#include "sample/block/bins.h"
#include "sample/block/device_row.h"
#include "sample/share.h"
#include "sample/weight.h"

namespace tinyvllm::block_sampler {

constexpr uint32_t kListed = 3072;  // what fits into 48 KB of shared memory beside the bins
constexpr int kIdDigit = 10;        // bits of an id that one bin spans at first: 1024 ids

struct Shared {
  Bins bins;
  float values[kListed];
  int32_t ids[kListed];
  uint32_t listed;
};

// A logit's place in the ranking, 0 the best there can be; zeros of both signs are equal.
TINYVLLM_ANYWHERE inline uint32_t place_of(float logit) {
  const uint32_t bits = logit == 0 ? 0 : __builtin_bit_cast(uint32_t, logit);
  return (bits >> 31) != 0 ? bits : ~(bits | 0x80000000u);
}
TINYVLLM_ANYWHERE inline float logit_at(uint32_t place) {
  return __builtin_bit_cast(float, (place >> 31) != 0 ? place : ~place & 0x7FFFFFFFu);
}

// octaves from 0 down to -30.
TINYVLLM_ANYWHERE inline int32_t bin_of(float octaves) {
  const auto bin = static_cast<int32_t>(-octaves * (kBins / -kFloorOctaves));
  return bin < kBins ? bin : kBins - 1;
}

template <class Block>
class Chooser {
 public:
  TINYVLLM_BLOCK Chooser(Block& block, Shared& shared, const float* logits, int32_t width,
                         float top, float scale, float floor)
      : block_(block),
        shared_(shared),
        logits_(logits),
        width_(width),
        top_(top),
        scale_(scale),
        floor_(floor) {}

  TINYVLLM_BLOCK int32_t choose(const DeviceRow& row) {
    const auto k = static_cast<uint64_t>(row.top_k);
    if (row.top_k > 0) {
      const Found found = narrow(count(), [&](uint64_t total) { return k < total ? k : total; });
      if (k < found.total) cut(count(), [&](uint64_t) { return k; });
      if (row.top_p < 1) {
        cut(weight(), [&](uint64_t total) { return share_of(row.top_p, total); });
      }
    } else if (row.top_p < 1) {
      const Found found =
          narrow(weight(), [&](uint64_t total) { return share_of(row.top_p, total); });
      cut(weight(), [&](uint64_t) { return found.need; });
    }
    const auto weigh = weight();
    return select_id([&](int32_t id, float v) { return kept(id, v) ? weigh(v) : 0; },
                     [&](uint64_t total) { return part_of(row.random, total) + 1; });
  }

  // The likeliest tokens, in no order.
  TINYVLLM_BLOCK void likeliest(Scores& scores, int32_t wanted) {
    const auto k = static_cast<uint64_t>(wanted);
    if (wanted == 0) return;
    cut(count(), [&](uint64_t total) { return k < total ? k : total; });
    list();
    for (uint32_t i = block_.thread(); i < listed_; i += block_.threads()) {
      scores.ids[i] = shared_.ids[i];
      scores.logits[i] = shared_.values[i];
    }
    if (block_.thread() == 0) scores.count = static_cast<int32_t>(listed_);
  }

 private:
  // What a token adds to a sum.
  struct Count {
    TINYVLLM_BLOCK uint32_t operator()(float) const { return 1; }
  };
  struct Weight {
    float top, scale;
    TINYVLLM_BLOCK uint32_t operator()(float v) const {
      return weight_of(octaves_of(v, top, scale));
    }
  };
  TINYVLLM_BLOCK Count count() const { return {}; }
  TINYVLLM_BLOCK Weight weight() const { return {top_, scale_}; }

  TINYVLLM_BLOCK bool kept(int32_t id, float v) const {
    const float octaves = octaves_of(v, top_, scale_);
    if (!(octaves >= floor_) || (narrowed_ && bin_of(octaves) > last_bin_)) return false;
    const uint32_t place = place_of(v);
    return place < last_place_ || (place == last_place_ && id <= last_id_);
  }

  template <class Visit>
  TINYVLLM_BLOCK void for_each(Visit visit) const {
    if (is_listed_) {
      for (uint32_t i = block_.thread(); i < listed_; i += block_.threads()) {
        visit(shared_.ids[i], shared_.values[i]);
      }
    } else {
      for_each_logit(block_, logits_, width_, visit);
    }
  }

  template <class Visit>
  TINYVLLM_BLOCK void for_each_kept(Visit visit) const {
    for_each([&](int32_t id, float v) {
      if (kept(id, v)) visit(id, v);
    });
  }

  // Leaves out what ranks far behind the place where the sums reach the need.
  template <class Mass, class Need>
  TINYVLLM_BLOCK Found narrow(Mass mass, Need need_of) {
    shared_.bins.clear(block_);
    for_each([&](int32_t, float v) {
      const float octaves = octaves_of(v, top_, scale_);
      if (octaves >= floor_) {
        shared_.bins.add(block_, static_cast<uint32_t>(bin_of(octaves)), mass(v));
      }
    });
    const Found found = shared_.bins.find(block_, need_of);
    narrowed_ = true;
    last_bin_ = found.bin;
    list();
    return found;
  }

  // Lists the tokens kept so far, if there is room for them.
  TINYVLLM_BLOCK void list() {
    if (block_.thread() == 0) shared_.listed = 0;
    block_.sync();
    for_each_kept([&](int32_t id, float v) {
      const uint32_t slot = block_.add(&shared_.listed, 1);
      if (slot >= kListed) return;
      shared_.ids[slot] = id;
      shared_.values[slot] = v;
    });
    block_.sync();
    listed_ = shared_.listed;
    is_listed_ = listed_ <= kListed;
  }

  // Keeps the first tokens by rank whose sum reaches the need.
  template <class Mass, class Need>
  TINYVLLM_BLOCK void cut(Mass mass, Need need_of) {
    uint32_t place = 0;
    Found found{};
    for (int shift = 21, known = 0; known<32; known += 11, shift = shift> 11 ? shift - 11 : 0) {
      const int digit = known < 22 ? 11 : 10;
      const uint64_t left = found.need - found.before;
      shared_.bins.clear(block_);
      for_each_kept([&](int32_t, float v) {
        const uint32_t p = place_of(v);
        if (known > 0 && p >> (32 - known) != place) return;
        shared_.bins.add(block_, p >> shift & ((1u << digit) - 1), mass(v));
      });
      found = shared_.bins.find(block_,
                                [&](uint64_t total) { return known == 0 ? need_of(total) : left; });
      place = place << digit | static_cast<uint32_t>(found.bin);
    }

    // Tokens at one place weigh the same; of those the lowest ids.
    const uint64_t each = mass(logit_at(place));
    const uint64_t equals = (found.need - found.before + each - 1) / each;
    int32_t last_id = place == last_place_ ? last_id_ : INT32_MAX;
    if (equals * each < found.inside) {
      last_id = select_id(
          [&](int32_t id, float v) {
            return place_of(v) == place && kept(id, v) ? uint32_t{1} : uint32_t{0};
          },
          [&](uint64_t) { return equals; });
    }
    last_place_ = place;
    last_id_ = last_id;
  }

  // The id at which the sums, by ascending id, reach the need.
  template <class Mass, class Need>
  TINYVLLM_BLOCK int32_t select_id(Mass mass, Need need_of) {
    Bins& bins = shared_.bins;
    bins.clear(block_);
    if (is_listed_) {
      for_each([&](int32_t id, float v) {
        bins.add(block_, static_cast<uint32_t>(id) >> kIdDigit, mass(id, v));
      });
    } else {
      add_runs(mass);
    }
    const Found found = bins.find(block_, need_of);
    const uint64_t left = found.need - found.before;
    const int32_t first = found.bin << kIdDigit;
    bins.clear(block_);
    if (is_listed_) {
      for_each([&](int32_t id, float v) {
        if (id >> kIdDigit == found.bin) {
          bins.add(block_, static_cast<uint32_t>(id - first), mass(id, v));
        }
      });
    } else {
      const int32_t end = run_end(first);
      for (int32_t id = first + block_.thread(); id < end; id += block_.threads()) {
        bins.set(static_cast<uint32_t>(id - first), mass(id, logits_[id]));
      }
    }
    return first + bins.find(block_, [&](uint64_t) { return left; }).bin;
  }

  // The whole row by runs of ids, a warp to each, which spares it the adding between threads.
  template <class Mass>
  TINYVLLM_BLOCK void add_runs(Mass mass) {
    const int32_t runs = (width_ + (1 << kIdDigit) - 1) >> kIdDigit;
    for (int32_t run = block_.warp(); run < runs; run += block_.warps()) {
      const int32_t first = run << kIdDigit;
      uint64_t sum = 0;
      for (int32_t id = first + block_.lane(); id < run_end(first); id += block_.lanes()) {
        sum += mass(id, logits_[id]);
      }
      sum = block_.warp_sum(sum);
      if (block_.lane() == 0) shared_.bins.set(static_cast<uint32_t>(run), sum);
    }
  }
  TINYVLLM_BLOCK int32_t run_end(int32_t first) const {
    const int32_t end = first + (1 << kIdDigit);
    return end < width_ ? end : width_;
  }

  Block& block_;
  Shared& shared_;
  const float* logits_;
  const int32_t width_;
  const float top_, scale_, floor_;
  bool is_listed_ = false;
  uint32_t listed_ = 0;
  // What is kept: tokens down to the floor, to the last bin, and to the last place in the ranking.
  bool narrowed_ = false;
  int32_t last_bin_ = 0;
  uint32_t last_place_ = UINT32_MAX;
  int32_t last_id_ = INT32_MAX;
};

}  // namespace tinyvllm::block_sampler
