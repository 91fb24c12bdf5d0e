// What a trace says of a model that was loaded: its file, its weights by component, what became of
// them on the way to the device, and which device that is.
#pragma once

#include "device/runtime.h"
#include "io/model_files.h"
#include "model/model.h"
#include "model/model_options.h"

namespace tinyvllm {

void trace_load(Runtime& runtime, const ModelFiles& files, const ModelInfo& info,
                const PreparationStats& stats);

}  // namespace tinyvllm
