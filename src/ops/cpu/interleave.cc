// Packs rows as the file has them into groups (interleaved.h). Quants move as 4-byte words, so this
// runs at the speed of memory.
#include <cstring>

#include "base/check.h"
#include "ops/cpu/interleaved.h"
#include "ops/cpu/linear_weights.h"

namespace tinyvllm::ops::cpu {
namespace {

// Blocks as they lie in a row of the file.
struct FileQ4_0 {
  uint16_t scale;
  uint8_t q[4][4];
};
struct FileQ4_1 {
  uint16_t scale;
  uint16_t min;
  uint8_t q[4][4];
};
struct FileQ8_0 {
  uint16_t scale;
  int8_t q[8][4];
};

template <class File, class Packed>
void pack_quants(const File& from, int row, Packed* to) {
  for (size_t v = 0; v < sizeof from.q / sizeof from.q[0]; ++v) {
    std::memcpy(to->q[v][row], from.q[v], sizeof from.q[v]);
  }
}
void pack(const FileQ4_0& from, int row, PackedQ4_0* to) {
  to->scale[row] = from.scale;
  pack_quants(from, row, to);
}
void pack(const FileQ4_1& from, int row, PackedQ4_1* to) {
  to->scale[row] = from.scale;
  to->min[row] = from.min;
  pack_quants(from, row, to);
}
void pack(const FileQ8_0& from, int row, PackedQ8_0* to) {
  to->scale[row] = from.scale;
  pack_quants(from, row, to);
}

template <class File, class Packed>
void interleave_rows(const void* source, int rows, int64_t blocks, void* group) {
  const auto* bytes = static_cast<const char*>(source);
  auto* packed = static_cast<Packed*>(group);
  if (rows < kRowGroup) std::memset(group, 0, static_cast<size_t>(blocks) * sizeof(Packed));
  for (int64_t b = 0; b < blocks; ++b) {
    for (int row = 0; row < rows; ++row) {
      File file;  // the map may have it at any address
      std::memcpy(&file, bytes + static_cast<size_t>(row * blocks + b) * sizeof file, sizeof file);
      pack(file, row, packed + b);
    }
  }
}

}  // namespace

size_t interleaved_bytes(DType dtype, int64_t k) {
  const auto blocks = static_cast<size_t>(k / dtype_info(dtype).block_elements);
  switch (dtype) {
    case DType::kQ4_0:
      return blocks * sizeof(PackedQ4_0);
    case DType::kQ4_1:
      return blocks * sizeof(PackedQ4_1);
    case DType::kQ8_0:
      return blocks * sizeof(PackedQ8_0);
    default:
      return 0;
  }
}

void interleave(DType dtype, const void* source, int rows, int64_t k, void* group) {
  const int64_t blocks = k / dtype_info(dtype).block_elements;
  switch (dtype) {
    case DType::kQ4_0:
      return interleave_rows<FileQ4_0, PackedQ4_0>(source, rows, blocks, group);
    case DType::kQ4_1:
      return interleave_rows<FileQ4_1, PackedQ4_1>(source, rows, blocks, group);
    case DType::kQ8_0:
      return interleave_rows<FileQ8_0, PackedQ8_0>(source, rows, blocks, group);
    default:
      CHECK(false) << dtype_name(dtype) << " is not interleaved";
  }
}

}  // namespace tinyvllm::ops::cpu
