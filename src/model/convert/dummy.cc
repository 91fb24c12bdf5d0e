#include "model/convert/dummy.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>

#include "io/gguf_writer.h"
#include "io/mapped_file.h"
#include "model/convert/dummy_vocabulary.h"
#include "model/convert/hf_metadata.h"
#include "model/convert/presets.h"
#include "ops/reference/random_row.h"

namespace tinyvllm {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTaskElements = 1 << 20;

Result<std::unique_ptr<ModelFiles>> read_config(const std::string& what) {
  if (const auto preset = preset_config(what)) return ModelFiles::from_config(*preset, what);
  std::error_code ignored;
  fs::path path(what);
  if (fs::is_directory(path, ignored)) path /= "config.json";
  if (!fs::exists(path, ignored)) {
    return error("'", printable(what, 4096), "': expected a preset (", preset_names(),
                 "), a config.json, or a folder that holds one");
  }
  TRY_ASSIGN(const std::unique_ptr<MappedFile> file, MappedFile::open(path.string()));
  return ModelFiles::from_config(file->bytes(), path.string());
}

// What one tensor of the file holds.
struct Filling {
  GgufTensor tensor;
  ModelListing::Kind kind = ModelListing::Kind::kMatrix;
  std::vector<float> table;  // its numbers, where they are not made up
};

std::vector<Filling> fillings_of(HfDescription& model) {
  std::vector<Filling> fillings;
  for (const ModelListing::Weight& weight : model.listing.weights) {
    fillings.push_back({{weight.name, DType::kF32, weight.shape}, weight.kind, {}});
  }
  for (FactorTable& table : model.tables) {
    const auto size = static_cast<int64_t>(table.values.size());
    fillings.push_back(
        {{table.name, DType::kF32, {size}}, ModelListing::Kind::kTable, std::move(table.values)});
  }
  return fillings;
}

uint64_t key_of(std::string_view name) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

// Matrices keep the size of what they multiply: rows of `n` numbers of 1/sqrt(n). Norms are near 1
// and biases small, so activations stay of size one through any number of layers.
void fill_row(const Filling& f, int64_t r, char* row) {
  const int64_t n = f.tensor.shape.row_elements();
  auto* numbers = reinterpret_cast<float*>(row);
  if (f.kind == ModelListing::Kind::kTable) {
    std::memcpy(row, f.table.data(), f.table.size() * sizeof(float));
    return;
  }
  const bool matrix = f.kind == ModelListing::Kind::kMatrix;
  const float size = matrix ? 1 / std::sqrt(static_cast<float>(n)) : 0.1f;
  const uint64_t key = key_of(f.tensor.name) + static_cast<uint64_t>(r) * 0xD1342543DE82EF95u;
  ops::reference::random_row(f.tensor.dtype, n, size, key, row);
  if (f.kind != ModelListing::Kind::kNorm) return;
  for (int64_t i = 0; i < n; ++i) numbers[i] += 1;
}

void fill(const std::vector<Filling>& fillings, const GgufLayout& layout, char* file,
          ThreadPool& pool) {
  for (size_t t = 0; t < fillings.size(); ++t) {
    const Shape& shape = fillings[t].tensor.shape;
    const size_t bytes = row_bytes(fillings[t].tensor.dtype, shape.row_elements());
    const int64_t rows_per_task = std::max<int64_t>(1, kTaskElements / shape.row_elements());
    const int64_t tasks = (shape.rows() + rows_per_task - 1) / rows_per_task;
    pool.parallel_for(tasks, [&](int64_t task, int) {
      const int64_t end = std::min(shape.rows(), (task + 1) * rows_per_task);
      for (int64_t r = task * rows_per_task; r < end; ++r) {
        fill_row(fillings[t], r, file + layout.offsets[t] + static_cast<size_t>(r) * bytes);
      }
    });
  }
}

}  // namespace

Result<std::unique_ptr<ModelFiles>> make_dummy(const std::string& what, const FileType& type,
                                               bool pure, Device& device, ThreadPool& pool) {
  TRY_ASSIGN(const std::unique_ptr<ModelFiles> config, read_config(what));
  TRY_ASSIGN(HfDescription model, describe_hf(*config, device, pool));
  TRY(add_dummy_vocabulary(model.config.vocab_size, model.pairs));
  set_file_type(type, model.pairs);

  std::vector<Filling> fillings = fillings_of(model);
  std::vector<GgufTensor> tensors;
  for (const Filling& f : fillings) tensors.push_back(f.tensor);
  const std::vector<DType> types = choose_types(type, pure, tensors);
  for (size_t i = 0; i < types.size(); ++i) {
    tensors[i].dtype = fillings[i].tensor.dtype = types[i];
  }
  const GgufLayout layout = lay_out_gguf(model.pairs, tensors);
  char* bytes = nullptr;
  TRY_ASSIGN(std::unique_ptr<MappedFile> file,
             MappedFile::in_memory(what, layout.total_bytes, &bytes));
  std::memcpy(bytes, layout.header.data(), layout.header.size());
  fill(fillings, layout, bytes, pool);
  return ModelFiles::adopt_gguf(std::move(file));
}

}  // namespace tinyvllm
