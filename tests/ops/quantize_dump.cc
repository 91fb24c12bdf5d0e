// For quantize_check.py: `quantize_dump TYPE ROW` reads float32 on stdin, rows of ROW numbers, and
// writes them as TYPE on stdout.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "ops/reference/quantize.h"

int main(int argc, char** argv) {
  using namespace tinyvllm;
  if (argc != 3) return 1;
  const auto dtype = dtype_from_name(argv[1]);
  const int64_t row = std::atoll(argv[2]);
  if (!dtype || !ops::reference::can_quantize(*dtype) || row <= 0) return 1;
  const std::string bytes((std::istreambuf_iterator<char>(std::cin)),
                          std::istreambuf_iterator<char>());
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  const auto rows = static_cast<int64_t>(bytes.size() / sizeof(float)) / row;
  std::vector<char> out(row_bytes(*dtype, row));
  for (int64_t r = 0; r < rows; ++r) {
    ops::reference::quantize_row(*dtype, values + r * row, row, out.data());
    std::fwrite(out.data(), 1, out.size(), stdout);
  }
  return 0;
}
