// How an architecture gets its weights without touching their bytes: it asks by name and size, and
// the binder finds, checks, fuses and packs. Architectures speak GGUF's names; for a Hugging Face
// folder their name table translates. Tensor-parallel splits, adapters and offload would enter
// here.
#pragma once

#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "io/model_files.h"
#include "model/model_options.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "ops/norm.h"

namespace tinyvllm {

// "blk.{}.attn_q" ↔ "model.layers.{}.self_attn.q_proj": {} is the layer. Where GGUF stacks the
// experts of a layer in one tensor and Hugging Face has one each, a second {} is the expert.
struct NameRow {
  const char* gguf;
  const char* hf;
};

class WeightBinder {
 public:
  struct Part {
    std::string name;  // without ".weight"
    int64_t out;
  };

  // With a listing nothing is bound: what is asked for is written there, and what is handed out is
  // empty. The files may then be without tensors.
  WeightBinder(const ModelFiles& files, Device& device, ThreadPool& pool,
               std::span<const NameRow> names, const ModelOptions& options)
      : files_(files),
        device_(device),
        pool_(pool),
        names_(names),
        progress_(options.progress),
        stats_(options.stats),
        listing_(options.listing) {}

  bool has(const std::string& name, const char* suffix = ".weight") const;
  ModelFormat format() const { return files_.format(); }

  // Several parts become one Linear whose results lie side by side. With `bias` each part must have
  // one; without, none may.
  Result<ops::Linear> linear(std::initializer_list<Part> parts, int64_t in, bool bias = false);
  // `offset` is added to every weight: 1 for files that store the difference from 1.
  Result<ops::Norm> norm(const std::string& name, ops::NormKind kind, float eps, int64_t width,
                         float offset = 0);
  Result<ops::Embedding> embedding(const std::string& name, int64_t rows, int64_t width);

  // gate and up: [hidden] → [ffn], down: [ffn] → [hidden]; `used` of `count` run for a token.
  struct ExpertNames {
    std::string gate, up, down;
  };
  Result<ops::Experts> experts(const ExpertNames& names, int64_t count, int64_t used,
                               int64_t hidden, int64_t ffn);

  // A short list of positive factors.
  Result<std::vector<float>> factors(const std::string& name, int64_t count);

  // Bytes of everything bound that one decoded token reads in full.
  size_t bytes_per_token() const { return bytes_per_token_; }

  // Tensors that the file has and nobody asked for are an error: a model with parts we would ignore
  // is not the model we would run.
  Status finish();
  void ignore(const std::string& name) { used_.insert(source_name(name)); }

 private:
  struct Source {
    std::string name;
    TensorView view;
    bool shared = false;  // bound before: a head that is the embedding
  };
  std::string source_name(const std::string& name) const;
  using Kind = ModelListing::Kind;
  Result<Source> take(const std::string& source, const Shape& shape);
  // The tensor of a name, listed where there is a list.
  Result<Source> take_named(const std::string& name, Kind kind, const Shape& shape,
                            float offset = 0);
  void list(ModelListing::Weight weight);
  void report(std::string_view tensor, size_t unsent);
  Result<std::vector<Source>> take_experts(const std::string& name, int64_t count, int64_t out,
                                           int64_t in);
  Status check_on_device();
  Result<ops::Linear> pack(std::span<const Source> weights, std::span<const Source> biases);
  void count_held(std::span<const Source> weights, size_t bytes, bool dropped);

  const ModelFiles& files_;
  Device& device_;
  ThreadPool& pool_;
  std::span<const NameRow> names_;
  const LoadProgress progress_;
  PreparationStats* const stats_;
  int64_t loaded_bytes_ = 0;  // taken
  int64_t sent_bytes_ = 0;    // of them, as reported
  ModelListing* const listing_;
  std::set<std::string> used_;
  std::shared_ptr<void> embedding_on_device_;
  size_t bytes_per_token_ = 0;
};

}  // namespace tinyvllm
