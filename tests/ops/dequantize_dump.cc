// For dequantize_check.py. Without an argument: every known type as "ID NAME ELEMENTS BYTES". With
// the name of a type: blocks on stdin, their numbers as float32 on stdout.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "ops/reference/dequantize.h"

int main(int argc, char** argv) {
  using namespace tinyvllm;
  if (argc < 2) {
    for (uint32_t id = 0; id < 256; ++id) {
      if (const auto dtype = dtype_from_id(id)) {
        const DTypeInfo& info = dtype_info(*dtype);
        std::printf("%u %s %d %d\n", id, info.name, info.block_elements, info.block_bytes);
      }
    }
    return 0;
  }
  const auto dtype = dtype_from_name(argv[1]);
  if (!dtype || !ops::reference::can_dequantize(*dtype)) return 1;
  const std::string blocks((std::istreambuf_iterator<char>(std::cin)),
                           std::istreambuf_iterator<char>());
  const DTypeInfo& info = dtype_info(*dtype);
  std::vector<float> out(blocks.size() / static_cast<size_t>(info.block_bytes) *
                         static_cast<size_t>(info.block_elements));
  ops::reference::dequantize(*dtype, blocks.data(), static_cast<int64_t>(out.size()), out.data());
  std::fwrite(out.data(), sizeof(float), out.size(), stdout);
  return 0;
}
