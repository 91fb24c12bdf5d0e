#include "ops/cuda/host.h"
#include "ops/cuda/ops.h"

namespace tinyvllm::ops::cuda {
namespace {

// The experts' matrices as arrays on the card: [gates, ups, downs], count of each.
struct ExpertTable {
  Buffer memory;
  Form up_form = Form::kHalf;
  Form down_form = Form::kHalf;
  size_t count = 0;

  const Packed* at(size_t kind) const {
    return static_cast<const Packed*>(memory.data()) + kind * count;
  }
};

}  // namespace

Status prepare_experts(Device& device, Experts& experts) {
  auto table = std::make_shared<ExpertTable>();
  table->count = experts.gate_up.size();
  std::vector<Packed> all(3 * table->count);
  for (size_t i = 0; i < table->count; ++i) {
    const CudaLinear& both = weights_of(experts.gate_up[i]);
    const CudaLinear& down = weights_of(experts.down[i]);
    const std::optional<GateUp> gate_up = gate_and_up(both);
    if (!gate_up || down.parts.size() != 1) {
      return error("experts of different types in one layer have no kernel on ", device.name());
    }
    all[i] = gate_up->gate;
    all[table->count + i] = gate_up->up;
    all[2 * table->count + i] = down.parts[0].packed;
    if (all[i].form != all[0].form || all[table->count + i].form != all[0].form ||
        all[2 * table->count + i].form != all[2 * table->count].form) {
      return error("experts of different types in one layer have no kernel on ", device.name());
    }
  }
  table->up_form = all[0].form;
  table->down_form = all[2 * table->count].form;
  const size_t bytes = all.size() * sizeof(Packed);
  TRY_ASSIGN(table->memory, device.allocate(bytes, "a table of experts"));
  TRY(device.upload(table->memory.data(), all.data(), bytes));
  experts.on_device = std::move(table);
  return Status();
}

void moe_add(ExecContext& ctx, const Norm& n, const Linear& router, const Experts& experts,
             const MoeParams& params, const Tensor& x, const Tensor& y) {
  const auto& table = *static_cast<const ExpertTable*>(experts.on_device.get());
  const ArenaScope scope(ctx.arena);
  const int64_t slots = x.rows * params.used;
  const Tensor normed = ctx.tensor(x.rows, x.cols, DType::kF16);
  const Tensor logits = ctx.tensor(x.rows, router.out(), DType::kF32);
  const Tensor hidden = ctx.tensor(slots, experts.down.front().in(), DType::kF16);
  auto* chosen =
      static_cast<int32_t*>(ctx.arena.take(static_cast<size_t>(slots) * sizeof(int32_t)));
  auto* weights = static_cast<float*>(ctx.arena.take(static_cast<size_t>(slots) * sizeof(float)));
  linear(ctx, &n, router, Epilogue::kStore, x, logits);
  if (ctx.dry_run) return;
  norm_rows(norm_args(&n), rows(x), rows(normed), false, stream_of(ctx));
  route(rows(logits), params.used, params.normalize, chosen, weights, stream_of(ctx));
  ExpertArgs args;
  args.up_form = table.up_form;
  args.down_form = table.down_form;
  args.gates = table.at(0);
  args.ups = table.at(1);
  args.downs = table.at(2);
  args.experts = chosen;
  args.weights = weights;
  args.used = params.used;
  args.gate = params.gate == Gate::kSilu ? Epilogue::kSiluGate : Epilogue::kGeluGate;
  run_experts(args, rows(normed), rows(hidden), rows(y), stream_of(ctx));
}

}  // namespace tinyvllm::ops::cuda
