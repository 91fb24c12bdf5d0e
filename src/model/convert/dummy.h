// `--load-format dummy`: a model with the right names, shapes and types and random weights, as a
// GGUF file in memory that nothing above can tell from one on disk. The same name and type give the
// same bytes every time, whether they are run or written to a file.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "device/device.h"
#include "io/model_files.h"
#include "model/convert/file_type.h"

namespace tinyvllm {

// `what`: a preset's name, a config.json, or a folder that holds one. `pure` as in choose_types.
Result<std::unique_ptr<ModelFiles>> make_dummy(const std::string& what, const FileType& type,
                                               bool pure, Device& device, ThreadPool& pool);

}  // namespace tinyvllm
