#include "model/convert/write_gguf.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include "io/gguf_writer.h"
#include "ops/reference/dequantize.h"
#include "ops/reference/quantize.h"

namespace tinyvllm {
namespace {

constexpr int64_t kSlabElements = 4 << 20;   // at most 16 MB of F32 between two writes
constexpr int64_t kTaskElements = 32 << 10;  // about a millisecond of quantizing
constexpr float kLargestHalf = 65504;

// Numbers that a type cannot hold, found by any thread.
struct Unfit {
  std::atomic<bool> not_finite{false};
  std::atomic<bool> too_large{false};
};

void check_row(const float* values, int64_t n, Unfit& unfit) {
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    finite &= std::isfinite(values[i]);
    largest = std::max(largest, std::fabs(values[i]));
  }
  if (!finite) unfit.not_finite = true;
  if (largest > kLargestHalf) unfit.too_large = true;
}

class SlabConverter {
 public:
  SlabConverter(const GgufSource& source, DType dtype, ThreadPool& pool)
      : source_(source),
        dtype_(dtype),
        pool_(pool),
        width_(source.shape.row_elements()),
        row_bytes_(row_bytes(dtype, width_)) {}

  int64_t slab_rows() const { return std::max<int64_t>(1, kSlabElements / width_); }

  // Rows [begin, end) in the target's type.
  Status convert(int64_t begin, int64_t end, std::vector<uint8_t>& out) {
    out.resize(static_cast<size_t>(end - begin) * row_bytes_);
    const int64_t task_rows = std::max<int64_t>(1, kTaskElements / width_);
    const int64_t tasks = (end - begin + task_rows - 1) / task_rows;
    scratch_.resize(static_cast<size_t>(pool_.size()));
    Unfit unfit;
    pool_.parallel_for(tasks, [&](int64_t task, int thread) {
      std::vector<float>& values = scratch_[static_cast<size_t>(thread)];
      values.resize(static_cast<size_t>(width_));
      const int64_t first = begin + task * task_rows;
      for (int64_t r = first; r < std::min(first + task_rows, end); ++r) {
        convert_row(r, values.data(), out.data() + static_cast<size_t>(r - begin) * row_bytes_,
                    unfit);
      }
    });
    return check(unfit);
  }

 private:
  void convert_row(int64_t r, float* values, uint8_t* row, Unfit& unfit) {
    ops::reference::dequantize(source_.dtype, source_.row(r), width_, values);
    if (source_.offset != 0) {
      for (int64_t i = 0; i < width_; ++i) values[i] += source_.offset;
    }
    check_row(values, width_, unfit);
    ops::reference::quantize_row(dtype_, values, width_, row);
  }

  Status check(const Unfit& unfit) const {
    if (unfit.not_finite) {
      return error("tensor '", printable(source_.name), "' holds numbers that are not finite");
    }
    if (unfit.too_large && dtype_ != DType::kF32 && dtype_ != DType::kBF16) {
      return error("tensor '", printable(source_.name), "' holds numbers beyond ±", kLargestHalf,
                   ", which ", dtype_name(dtype_), " cannot hold; BF16 can");
    }
    return Status();
  }

  const GgufSource& source_;
  const DType dtype_;
  ThreadPool& pool_;
  const int64_t width_;
  const size_t row_bytes_;
  std::vector<std::vector<float>> scratch_;  // per thread
};

bool is_copy(const GgufSource& source, DType dtype) {
  return source.dtype == dtype && source.offset == 0;
}

Status check_types(const GgufModel& model, const std::vector<GgufTensor>& targets) {
  for (size_t i = 0; i < targets.size(); ++i) {
    const GgufSource& source = model.tensors[i];
    if (is_copy(source, targets[i].dtype) || ops::reference::can_dequantize(source.dtype)) continue;
    return error("tensor '", printable(source.name), "' is ", dtype_name(source.dtype),
                 ", which cannot be read as numbers");
  }
  return Status();
}

// Calls the progress function, and turns its refusal into an error.
class Progress {
 public:
  Progress(const WriteOptions& options, int64_t total) : options_(options), total_(total) {}

  Status advance(const GgufSource& tensor, int64_t elements) {
    done_ += elements;
    if (options_.progress && !options_.progress(tensor.name, done_, total_)) {
      return error("stopped before the file was complete");
    }
    return Status();
  }

 private:
  const WriteOptions& options_;
  const int64_t total_;
  int64_t done_ = 0;
};

Status write_tensor(const GgufSource& source, DType dtype, ThreadPool& pool, GgufWriter& writer,
                    Progress& progress) {
  const int64_t rows = source.shape.rows();
  const int64_t width = source.shape.row_elements();
  const size_t bytes = row_bytes(dtype, width);
  SlabConverter converter(source, dtype, pool);
  std::vector<uint8_t> slab;
  for (int64_t begin = 0; begin < rows; begin += converter.slab_rows()) {
    const int64_t end = std::min(rows, begin + converter.slab_rows());
    if (!is_copy(source, dtype)) {
      TRY(converter.convert(begin, end, slab));
      TRY(writer.write(slab.data(), slab.size()));
    } else if (source.row_order.empty() && source.parts.size() == 1) {
      TRY(writer.write(source.row(begin), static_cast<size_t>(end - begin) * bytes));
    } else {
      for (int64_t r = begin; r < end; ++r) TRY(writer.write(source.row(r), bytes));
    }
    TRY(progress.advance(source, (end - begin) * width));
  }
  return Status();
}

}  // namespace

Result<WriteReport> write_gguf(GgufModel& model, const FileType& type, const std::string& path,
                               ThreadPool& pool, const WriteOptions& options) {
  WriteReport report;
  for (const GgufSource& source : model.tensors) {
    report.tensors.push_back({source.name, source.own_type, source.shape});
    report.parameters += source.shape.elements();
  }
  const std::vector<DType> types = choose_types(type, options.pure, report.tensors);
  for (size_t i = 0; i < types.size(); ++i) {
    const DType had = model.tensors[i].dtype;
    report.requantized += had != types[i] && is_quantized(had) && is_quantized(types[i]);
    report.tensors[i].dtype = types[i];
  }
  TRY(check_types(model, report.tensors));
  set_file_type(type, model.pairs);

  TRY_ASSIGN(const std::unique_ptr<GgufWriter> writer,
             GgufWriter::create(path, model.pairs, report.tensors));
  Progress progress(options, report.parameters);
  for (size_t i = 0; i < types.size(); ++i) {
    TRY(write_tensor(model.tensors[i], types[i], pool, *writer, progress));
  }
  TRY(writer->finish());
  report.file_bytes = writer->total_bytes();
  return report;
}

}  // namespace tinyvllm
