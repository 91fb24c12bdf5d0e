#include "io/gguf_writer.h"

#include "base/check.h"

namespace tinyvllm {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;  // the format's default: no key says so

uint64_t aligned(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_tensor(std::string& bytes, const GgufTensor& tensor, uint64_t data_offset) {
  append<uint64_t>(bytes, tensor.name.size());
  bytes += tensor.name;
  append(bytes, static_cast<uint32_t>(tensor.shape.rank));
  for (int d = tensor.shape.rank; d-- > 0;) append(bytes, tensor.shape[d]);  // innermost first
  append(bytes, static_cast<uint32_t>(tensor.dtype));
  append(bytes, data_offset);
}

}  // namespace

GgufLayout lay_out_gguf(const GgufPairs& pairs, const std::vector<GgufTensor>& tensors) {
  CHECK(!pairs.has("general.alignment")) << "tensors are laid out at the default alignment";
  GgufLayout layout;
  append(layout.header, kMagic);
  append(layout.header, kVersion);
  append<uint64_t>(layout.header, tensors.size());
  append<uint64_t>(layout.header, pairs.count());
  pairs.append_to(layout.header);

  uint64_t data_offset = 0;
  for (const GgufTensor& tensor : tensors) {
    append_tensor(layout.header, tensor, data_offset);
    layout.offsets.push_back(data_offset);
    data_offset += aligned(tensor.bytes());
  }
  layout.header.resize(aligned(layout.header.size()));
  for (uint64_t& offset : layout.offsets) offset += layout.header.size();
  layout.total_bytes = layout.header.size() + data_offset;
  return layout;
}

Result<std::unique_ptr<GgufWriter>> GgufWriter::create(const std::string& path,
                                                       const GgufPairs& pairs,
                                                       std::vector<GgufTensor> tensors) {
  std::unique_ptr<GgufWriter> writer(new GgufWriter);
  TRY_ASSIGN(writer->file_, NewFile::create(path));
  writer->layout_ = lay_out_gguf(pairs, tensors);
  writer->tensors_ = std::move(tensors);
  TRY(writer->file_->reserve(writer->layout_.total_bytes));
  TRY(writer->file_->write(writer->layout_.header.data(), writer->layout_.header.size()));
  writer->at_ = writer->layout_.header.size();
  return writer;
}

Status GgufWriter::pad_to(uint64_t offset) {
  static constexpr char kZeros[kAlignment] = {};
  CHECK(offset >= at_ && offset - at_ < kAlignment) << "padding from " << at_ << " to " << offset;
  TRY(file_->write(kZeros, offset - at_));
  at_ = offset;
  return Status();
}

Status GgufWriter::write(const void* data, size_t bytes) {
  CHECK(current_ < tensors_.size()) << "bytes after the last tensor";
  TRY(pad_to(std::max(at_, layout_.offsets[current_])));
  const uint64_t end = layout_.offsets[current_] + tensors_[current_].bytes();
  CHECK(bytes <= end - at_) << tensors_[current_].name << ": more bytes than it has";
  TRY(file_->write(data, bytes));
  at_ += bytes;
  if (at_ == end) current_ += 1;
  return Status();
}

Status GgufWriter::finish() {
  CHECK(current_ == tensors_.size()) << "tensor " << current_ << " is not complete";
  TRY(pad_to(layout_.total_bytes));
  return file_->commit();
}

}  // namespace tinyvllm
