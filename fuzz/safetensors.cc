// Any bytes as a safetensors file.
#include "fuzz/touch.h"
#include "io/safetensors_reader.h"

using namespace tinyvllm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto tensors = read_safetensors(bytes);
  if (!tensors.ok()) return 0;
  for (const WeightTensor& tensor : tensors.value()) fuzz::touch(tensor);
  return 0;
}
