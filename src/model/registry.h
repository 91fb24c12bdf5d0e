// The architectures that can be run. Adding one is a file in arch/ and a row in registry.cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "io/model_files.h"
#include "model/model.h"
#include "model/model_options.h"

namespace tinyvllm {

struct Architecture {
  using Loader = Result<std::unique_ptr<Model>>(const ModelFiles& files, Device& device,
                                                ThreadPool& pool, const ModelOptions& options);

  const char* gguf_name;  // general.architecture
  const char* hf_name;    // config.json: architectures[0]
  Loader* load;
};

std::span<const Architecture> architectures();

// The architecture that the files name, or an error that lists the known ones.
Result<const Architecture*> find_architecture(const ModelFiles& files);

Result<std::unique_ptr<Model>> load_model(const ModelFiles& files, Device& device, ThreadPool& pool,
                                          const ModelOptions& options);

// All tensors of the files, in the order in which loading the model will ask for them; those that
// it will not ask for, if any, at the end.
std::vector<TensorView> weights_in_order(const ModelFiles& files, Device& device, ThreadPool& pool);

}  // namespace tinyvllm
