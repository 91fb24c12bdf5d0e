// The facts about a model that its files state, added up for people: sizes, shape of the network,
// bytes that decoding moves. Works for any architecture; what a file does not say stays empty.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_files.h"
#include "io/tensor_role.h"

namespace tinyvllm {

struct TensorTotals {
  uint64_t tensors = 0, parameters = 0, bytes = 0;
};

struct ModelSummary {
  std::string architecture;  // "llama"
  std::string name;          // as its authors call it; may be empty
  std::string tokenizer;     // "byte-level BPE (smollm)"
  bool has_chat_template = false;
  uint64_t file_bytes = 0;

  // Heads and feed-forward size can differ by layer: then these are the largest.
  std::optional<int64_t> layers, width, heads, kv_heads, head_dim, ffn_dim;
  std::optional<int64_t> vocab_size, context_length, sliding_window;
  std::optional<int64_t> experts, experts_used;

  std::optional<double> rope_base, rope_factor;
  std::optional<int64_t> rope_dims;
  std::string rope_scaling;  // "linear", "yarn", …; empty for none

  TensorTotals total;
  std::array<TensorTotals, kComponentCount> components;
  std::map<std::string, TensorTotals> dtypes;
  bool tied_head = false;  // the output head is the embedding matrix

  uint64_t bytes_per_token = 0;                // weights that one decoded token reads
  std::optional<uint64_t> kv_bytes_per_token;  // at F16, all layers, no sliding window
};

Result<ModelSummary> summarize(const ModelFiles& files);

// KV bytes at F16 for so many tokens; empty when the files do not say enough or it does not fit 64
// bits.
std::optional<uint64_t> kv_bytes(const ModelSummary& summary, int64_t tokens);

}  // namespace tinyvllm
