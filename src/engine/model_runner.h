// The real Runner: a model, its KV memory and its activations on one device. Owned by the engine
// thread. On the CPU the device is the host's own cores, so a step is done by the time submit
// returns; callers cannot tell.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/runtime.h"
#include "engine/batch_builder.h"
#include "engine/runner.h"
#include "model/model.h"
#include "sample/sampler.h"

namespace tinyvllm {

struct RunnerConfig {
  int block_size = 16;
  std::vector<int> num_blocks;  // per KV group, the null block counted in
  int max_num_batched_tokens = 512;
  int max_num_seqs = 1;
  int max_num_logits = 1;  // rows of a step, when more than one a sequence is asked for
  int max_model_len = 0;   // the longest a sequence gets; 0: as long as there are blocks
};

class ModelRunner final : public Runner {
 public:
  // Asked when it is known what activations take: the blocks of each group, for sequences that are
  // no longer than the configuration's.
  using SizeCache = std::function<Result<std::vector<int>>(size_t activations)>;

  // Makes the KV cache and the arena; fails when the device has no room for them. Without
  // `size_cache` there are as many blocks as the configuration says.
  static Result<std::unique_ptr<ModelRunner>> create(Runtime& runtime, const Model& model,
                                                     const RunnerConfig& config,
                                                     const SizeCache& size_cache = nullptr);
  ~ModelRunner() override;

  Ticket submit(const StepPlan& plan) override;
  StepResult wait(Ticket ticket) override;
  bool feeds_unseen(const SamplingParams& sampling) const override {
    return sampler_->chooses_on_device(sampling);
  }

  // Called with each step's logits, [rows asked for, vocab_size], before they are sampled: for
  // tests and for tools that score text.
  void on_logits(std::function<void(const StepPlan&, const Tensor&)> hook) {
    hook_ = std::move(hook);
  }

  // From now on every op call of every step goes to the caller's ledger; null ends it.
  void keep_ledger(Ledger* ledger) { ledger_ = ledger; }

  size_t activation_bytes() const { return activations_.bytes(); }
  size_t activation_peak() const { return arena_.peak(); }  // that any step has used

 private:
  ModelRunner(Runtime& runtime, const Model& model, const RunnerConfig& config);
  BatchSizes largest_step(const RunnerConfig& config);
  Status make_room(const RunnerConfig& config, const BatchSizes& largest);
  Status allocate(const std::vector<int>& num_blocks, size_t activations);
  size_t measure_activations(const BatchSizes& largest);
  // A step that was submitted and not yet waited for.
  struct InFlight {
    StepResult result;
    bool failed = false;              // before it began
    Status enqueued;                  // how that went
    int64_t marks[3] = {-1, -1, -1};  // of the device: around the forward, and behind the sampling
  };
  Ticket enqueue(const StepPlan& plan);
  Ticket give_up(InFlight& step, const StepPlan& plan, const Status& why);
  void run_forward(ExecContext& ctx, const StepPlan& plan, const Batch& batch, const Tensor& logits,
                   InFlight& step);
  void show(const StepPlan& plan, const Tensor& logits);
  bool is_watched(const ExecContext& ctx) const {  // op by op
    return ledger_ != nullptr || ctx.trace.on(TraceLevel::kOp);
  }
  std::vector<SampleRow> rows_of(const StepPlan& plan, bool is_known);
  void remember(const std::vector<SampleOutput>& chosen);
  void find_fault(ExecContext& ctx, const StepPlan& plan, const Batch& batch, const Tensor& logits,
                  const std::vector<SampleOutput>& chosen);
  static std::vector<ScoredToken> score_prompts(ExecContext& ctx, const StepPlan& plan,
                                                const Tensor& logits);

  void trace_forward(const ExecContext& ctx, const StepPlan& plan, int64_t begin_ns,
                     int64_t end_ns) const;

  Runtime& runtime_;
  const Model& model_;
  const char* const backend_;  // the device's name, for traces
  BatchBuilder builder_;
  std::unique_ptr<StepRecorder> recorder_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<Buffer> kv_memory_;  // [group]
  std::vector<KvView> kv_;         // [group]
  Buffer activations_;
  Arena arena_;
  size_t leased_ = 0;
  int largest_blocks_ = 0;  // of one sequence
  std::function<void(const StepPlan&, const Tensor&)> hook_;

  Ledger* ledger_ = nullptr;

  Ticket next_ticket_ = 0;
  std::deque<InFlight> in_flight_;
  std::vector<int32_t> sampled_;                 // of the newest step that is known, by row
  std::vector<std::vector<int32_t>> completed_;  // histories of the step being built
  std::vector<int32_t> inputs_;                  // of that step; keeps its capacity
};

}  // namespace tinyvllm
