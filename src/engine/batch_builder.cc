#include "engine/batch_builder.h"

#include <algorithm>

#include "base/check.h"
#include "core/kv.h"

namespace tinyvllm {
namespace {

// Rows of logits that a sequence wants: of all its tokens, of the last one, or none.
int logits_of(const SequencePlan& sequence) {
  return sequence.all_logits ? sequence.num_tokens : sequence.sample ? 1 : 0;
}

}  // namespace

BatchSizes BatchBuilder::sizes(const StepPlan& plan) const {
  BatchSizes sizes;
  sizes.num_groups = num_groups_;
  sizes.num_sequences = static_cast<int>(plan.sequences.size());
  for (const SequencePlan& sequence : plan.sequences) {
    const int queries = sequence.num_tokens;
    CHECK(queries > 0) << "sequence " << sequence.sequence << " is planned without tokens";
    sizes.num_tokens += queries;
    sizes.num_logits += logits_of(sequence);
    sizes.max_queries = std::max(sizes.max_queries, queries);
    for (const auto& table : *sequence.block_tables) {
      sizes.max_blocks = std::max(sizes.max_blocks, static_cast<int>(table.size()));
    }
  }
  CHECK(static_cast<size_t>(sizes.num_tokens) == plan.tokens.size())
      << sizes.num_tokens << " tokens planned, " << plan.tokens.size() << " given";
  return sizes;
}

Batch BatchBuilder::build(const StepPlan& plan, const BatchSizes& sizes,
                          const std::vector<int32_t>* sampled, std::vector<int32_t>& inputs) const {
  inputs.assign(Batch::buffer_elements(sizes), kNullBlock);
  const Batch batch{sizes, inputs.data()};
  // The sections again, writable: this is the one place that fills them.
  const auto section = [&](const int32_t* part) { return inputs.data() + (part - batch.data); };
  int32_t* token_ids = section(batch.token_ids());
  int32_t* positions = section(batch.positions());
  int32_t* token_sequence = section(batch.token_sequence());
  int32_t* query_offsets = section(batch.query_offsets());
  int32_t* kv_lengths = section(batch.kv_lengths());
  int32_t* adapters = section(batch.adapters());
  int32_t* logit_rows = section(batch.logit_rows());

  int32_t token = 0;
  int32_t index = 0;
  query_offsets[0] = 0;
  for (const SequencePlan& sequence : plan.sequences) {
    for (int group = 0; group < num_groups_; ++group) {
      const auto& table = (*sequence.block_tables)[static_cast<size_t>(group)];
      std::copy(table.begin(), table.end(),
                section(batch.block_table(group)) +
                    static_cast<ptrdiff_t>(index) * batch.sizes.max_blocks);
      int32_t* slots = section(batch.slots(group));
      for (int i = 0; i < sequence.num_tokens; ++i) {
        const int position = sequence.position + i;
        slots[token + i] = table.at(static_cast<size_t>(position / block_size_)) * block_size_ +
                           position % block_size_;
      }
    }
    int32_t position = sequence.position;
    for (int i = 0; i < sequence.num_tokens; ++i) {
      const InputToken input = plan.tokens[static_cast<size_t>(token)];
      // A row that failed to sample has no token; what follows from it is void, but must be an id.
      const bool resolve = is_from_row(input) && sampled != nullptr;
      token_ids[token] = resolve ? std::max(0, sampled->at(static_cast<size_t>(~input))) : input;
      positions[token] = position++;
      token_sequence[token] = index;
      token += 1;
    }
    kv_lengths[index] = position;
    adapters[index] = sequence.adapter;
    for (int i = logits_of(sequence); i > 0; --i) *logit_rows++ = token - i;
    query_offsets[++index] = token;
  }
  for (; index < sizes.num_sequences; query_offsets[++index] = ++token) {
    token_sequence[token] = index;
    kv_lengths[index] = 1;
    adapters[index] = -1;
    *logit_rows++ = token;
  }
  return Batch{sizes};
}

}  // namespace tinyvllm
