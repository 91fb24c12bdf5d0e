#include "io/gguf_reader.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/utf8.h"
#include "io/byte_reader.h"

namespace tinyvllm {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kMaxGgufRank = 4;
constexpr uint64_t kMaxKeyBytes = 65535;  // the specification's limit
constexpr uint64_t kMaxNameBytes = 255;   // ggml writes at most 63
constexpr uint64_t kDefaultAlignment = 32;

// Limits on what comes before the tensor data, so that a sparse file, which can claim terabytes for
// nothing, cannot make us keep or scan much. A vocabulary of 262,144 takes some 10 MB here.
constexpr uint64_t kMaxHeaderBytes = 256 << 20;
constexpr uint64_t kMaxPairs = 65536;
constexpr uint64_t kMaxTensors = 1 << 20;

// The least a metadata pair or a tensor can occupy: what bounds their counts by the file's size.
constexpr uint64_t kMinPairBytes = 8 + 1 + 4 + 1;        // key length, key, type, value
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;  // name length, name, rank, type, offset

struct Header {
  uint32_t version = 0;
  uint64_t tensor_count = 0;
  uint64_t pair_count = 0;
};

class GgufReader {
 public:
  explicit GgufReader(std::string_view file)
      : file_(file), reader_(file.substr(0, kMaxHeaderBytes)) {}

  Result<GgufContents> read() {
    TRY_ASSIGN(const Header header, read_header());
    contents_.version = header.version;
    for (uint64_t i = 0; i < header.pair_count; ++i) TRY(read_pair(i));
    TRY_ASSIGN(const uint64_t alignment, read_alignment());
    contents_.tensors.reserve(header.tensor_count);
    for (uint64_t i = 0; i < header.tensor_count; ++i) TRY(read_tensor(i, alignment));
    TRY(place_tensors(alignment));
    return std::move(contents_);
  }

 private:
  // `what` is being read at the cursor, and the bytes end first.
  template <class... What>
  Error truncated(const What&... what) const {
    return error(what..., " at offset ", reader_.offset(), ": only ", left());
  }

  std::string left() const {
    return str_cat(reader_.remaining(), " bytes are left in the ",
                   file_.size() > kMaxHeaderBytes ? "256 MiB that metadata may take" : "file");
  }

  Result<Header> read_header() {
    uint32_t magic = 0;
    if (!reader_.read(&magic)) return truncated("magic");
    if (magic != kMagic) {
      return error("offset 0: expected the magic bytes 'GGUF', found '",
                   printable(file_.substr(0, 4)), "'");
    }
    Header header;
    if (!reader_.read(&header.version)) return truncated("version");
    if (header.version == 1) {
      return error("offset 4: GGUF version 1 is not supported; convert the file to version 2 or 3");
    }
    if ((header.version & 0xFFFF) == 0 && header.version != 0) {
      return error("offset 4: a big-endian GGUF file; only little-endian ones are supported");
    }
    if (header.version != 2 && header.version != 3) {
      return error("offset 4: GGUF version ", header.version, "; expected 2 or 3");
    }
    if (!reader_.read(&header.tensor_count)) return truncated("tensor count");
    if (!reader_.read(&header.pair_count)) return truncated("metadata count");
    TRY(check_count("offset 16: metadata count", header.pair_count, kMaxPairs, kMinPairBytes));
    TRY(check_count("offset 8: tensor count", header.tensor_count, kMaxTensors, kMinTensorBytes));
    return header;
  }

  Status check_count(const char* what, uint64_t count, uint64_t limit, uint64_t least_bytes) const {
    const uint64_t most = std::min(limit, reader_.remaining() / least_bytes);
    if (count <= most) return Status();
    return error(what, " is ", count, "; a file of ", file_.size(), " bytes can hold at most ",
                 most);
  }

  // A length and that many bytes of UTF-8.
  template <class... What>
  Result<std::string_view> read_string(uint64_t max_bytes, const What&... what) {
    const uint64_t start = reader_.offset();
    uint64_t length = 0;
    std::string_view text;
    if (!reader_.read(&length)) return truncated(what...);
    if (length > max_bytes) {
      return error(what..., " at offset ", start, ": length ", length, "; expected at most ",
                   max_bytes);
    }
    if (!reader_.read_bytes(length, &text)) {
      return error(what..., " at offset ", start, ": length ", length, "; only ", left());
    }
    if (!is_utf8(text)) {
      return error(what..., " at offset ", start, ": '", printable(text), "' is not UTF-8");
    }
    return text;
  }

  Result<GgufType> read_type(std::string_view key) {
    uint32_t type = 0;
    if (!reader_.read(&type)) return truncated("type of key '", printable(key), "'");
    if (type >= kGgufTypeCount) {
      return error("key '", printable(key), "' at offset ", reader_.offset() - sizeof type,
                   ": value type ", type, "; expected 0 to ", kGgufTypeCount - 1);
    }
    return static_cast<GgufType>(type);
  }

  Status read_pair(uint64_t index) {
    const uint64_t start = reader_.offset();
    TRY_ASSIGN(const std::string_view key, read_string(kMaxKeyBytes, "metadata key ", index));
    if (key.empty()) return error("metadata key ", index, " at offset ", start, " is empty");
    TRY_ASSIGN(const GgufType type, read_type(key));
    TRY_ASSIGN(MetadataValue value, read_value(key, type));
    if (!contents_.metadata.insert(key, std::move(value))) {
      return error("key '", printable(key), "' at offset ", start, " appears twice");
    }
    contents_.pairs.push_back({key, file_.substr(start, reader_.offset() - start)});
    return Status();
  }

  Result<MetadataValue> read_value(std::string_view key, GgufType type) {
    switch (type) {
      case GgufType::kU8:
        return read_number<uint8_t, uint64_t>(key);
      case GgufType::kU16:
        return read_number<uint16_t, uint64_t>(key);
      case GgufType::kU32:
        return read_number<uint32_t, uint64_t>(key);
      case GgufType::kU64:
        return read_number<uint64_t, uint64_t>(key);
      case GgufType::kI8:
        return read_number<int8_t, int64_t>(key);
      case GgufType::kI16:
        return read_number<int16_t, int64_t>(key);
      case GgufType::kI32:
        return read_number<int32_t, int64_t>(key);
      case GgufType::kI64:
        return read_number<int64_t, int64_t>(key);
      case GgufType::kF32:
        return read_number<float, double>(key);
      case GgufType::kF64:
        return read_number<double, double>(key);
      case GgufType::kBool:
        return read_flag(key);
      case GgufType::kArray:
        return read_array(key);
      case GgufType::kString:
        break;
    }
    TRY_ASSIGN(const std::string_view text,
               read_string(file_.size(), "value of key '", printable(key), "'"));
    return MetadataValue(text);
  }

  template <class Stored, class Value>
  Result<MetadataValue> read_number(std::string_view key) {
    Stored stored{};
    if (!reader_.read(&stored)) return truncated("value of key '", printable(key), "'");
    return MetadataValue(static_cast<Value>(stored));
  }

  Result<MetadataValue> read_flag(std::string_view key) {
    uint8_t flag = 0;
    if (!reader_.read(&flag)) return truncated("value of key '", printable(key), "'");
    if (flag > 1) {
      return error("key '", printable(key), "' at offset ", reader_.offset() - 1, ": flag is ",
                   int{flag}, "; expected 0 or 1");
    }
    return MetadataValue(flag != 0);
  }

  Result<MetadataValue> read_array(std::string_view key) {
    TRY_ASSIGN(const GgufType type, read_type(key));
    if (type == GgufType::kArray) {
      return error("key '", printable(key), "' at offset ", reader_.offset() - 4,
                   ": an array of arrays; expected an array of numbers, flags or strings");
    }
    const uint64_t start = reader_.offset();
    uint64_t count = 0;
    if (!reader_.read(&count)) return truncated("array length of key '", printable(key), "'");
    // A string costs its length field at least. The division keeps count × bytes from wrapping.
    const uint64_t least = type == GgufType::kString ? 8 : gguf_type_bytes(type);
    if (count > reader_.remaining() / least) {
      return error("key '", printable(key), "' at offset ", start, ": an array of ", count, " ",
                   gguf_type_name(type), " elements; only ", left());
    }
    if (type == GgufType::kString) return read_strings(key, count);
    std::string_view bytes;
    CHECK(reader_.read_bytes(count * least, &bytes)) << "the count was checked above";
    return MetadataValue(PackedArray{type, count, bytes.data()});
  }

  Result<MetadataValue> read_strings(std::string_view key, uint64_t count) {
    std::vector<std::string_view> list;
    list.reserve(count);
    const std::string name = printable(key);
    for (uint64_t i = 0; i < count; ++i) {
      TRY_ASSIGN(const std::string_view text,
                 read_string(file_.size(), "element ", i, " of key '", name, "'"));
      list.push_back(text);
    }
    return MetadataValue(std::move(list));
  }

  Result<uint64_t> read_alignment() const {
    TRY_ASSIGN(const int64_t alignment,
               contents_.metadata.integer_or("general.alignment", kDefaultAlignment));
    if (alignment < 8 || alignment > (1 << 30) ||
        !std::has_single_bit(static_cast<uint64_t>(alignment))) {
      return error("key 'general.alignment' is ", alignment,
                   "; expected a power of two from 8 to 1073741824");
    }
    return static_cast<uint64_t>(alignment);
  }

  // Reads one entry of the tensor list. Its file_offset is still relative to the data section.
  Status read_tensor(uint64_t index, uint64_t alignment) {
    WeightTensor tensor;
    const uint64_t start = reader_.offset();
    TRY_ASSIGN(const std::string_view name, read_string(kMaxNameBytes, "name of tensor ", index));
    if (name.empty()) return error("tensor ", index, " at offset ", start, " has no name");
    tensor.name = name;
    const std::string who = str_cat("tensor '", printable(name), "' at offset ", start);
    TRY_ASSIGN(tensor.view.shape, read_shape(who));

    uint32_t type = 0;
    if (!reader_.read(&type)) return truncated(who, ": type");
    const std::optional<DType> dtype = dtype_from_id(type);
    if (!dtype) return error(who, ": type ", type, " is not a known ggml type");
    tensor.view.dtype = *dtype;
    const int block = dtype_info(*dtype).block_elements;
    if (tensor.view.shape.row_elements() % block != 0) {
      return error(who, ": rows of ", tensor.view.shape.row_elements(), " elements; ",
                   dtype_name(*dtype), " needs a multiple of ", block);
    }

    if (!reader_.read(&tensor.file_offset)) return truncated(who, ": data offset");
    if (tensor.file_offset % alignment != 0) {
      return error(who, ": data offset ", tensor.file_offset, "; expected a multiple of ",
                   alignment);
    }
    contents_.tensors.push_back(std::move(tensor));
    return Status();
  }

  // Dimensions lie innermost first in the file. Neither their product nor its bytes can wrap.
  Result<Shape> read_shape(const std::string& who) {
    uint32_t rank = 0;
    if (!reader_.read(&rank)) return truncated(who, ": rank");
    if (rank > kMaxGgufRank) {
      return error(who, ": ", rank, " dimensions; expected at most ", kMaxGgufRank);
    }
    Shape shape;
    shape.rank = static_cast<int>(rank);
    int64_t elements = 1;
    for (uint32_t d = rank; d-- > 0;) {
      uint64_t size = 0;
      if (!reader_.read(&size)) return truncated(who, ": dimension ", rank - 1 - d);
      // An element takes at least one bit, so no tensor in the file has more than 8 × its bytes.
      const uint64_t most = file_.size() * 8 / static_cast<uint64_t>(elements);
      if (size == 0) return error(who, ": dimension ", rank - 1 - d, " is 0; expected at least 1");
      if (size > most) {
        return error(who, ": dimension ", rank - 1 - d, " is ", size,
                     "; a file of this size can hold at most ", most);
      }
      elements *= static_cast<int64_t>(size);
      shape.dims[d] = static_cast<int64_t>(size);
    }
    return shape;
  }

  // Turns data offsets into file offsets and pointers, once all names are known to be distinct and
  // all tensors to lie inside the file without overlapping.
  Status place_tensors(uint64_t alignment) {
    std::vector<WeightTensor>& tensors = contents_.tensors;
    if (tensors.empty()) return Status();
    const uint64_t data_start = (reader_.offset() + alignment - 1) / alignment * alignment;
    if (data_start > file_.size()) {
      return error("tensor data begins at offset ", data_start, ": the file ends after ",
                   file_.size(), " bytes");
    }
    const uint64_t data_bytes = file_.size() - data_start;
    for (WeightTensor& tensor : tensors) {
      const uint64_t bytes = tensor.view.bytes();
      if (bytes > data_bytes || tensor.file_offset > data_bytes - bytes) {
        return error("tensor '", printable(tensor.name), "': ", bytes, " bytes at data offset ",
                     tensor.file_offset, " reach past the ", data_bytes, " bytes of tensor data");
      }
      tensor.file_offset += data_start;
      tensor.view.data = file_.data() + tensor.file_offset;
    }
    return check_distinct(tensors);
  }

  static Status check_distinct(const std::vector<WeightTensor>& tensors) {
    std::vector<const WeightTensor*> order(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) order[i] = &tensors[i];
    std::sort(order.begin(), order.end(),
              [](auto* a, auto* b) { return a->file_offset < b->file_offset; });
    for (size_t i = 1; i < order.size(); ++i) {
      const WeightTensor& before = *order[i - 1];
      if (before.file_offset + before.view.bytes() > order[i]->file_offset) {
        return error("tensors '", printable(before.name), "' and '", printable(order[i]->name),
                     "' overlap at offset ", order[i]->file_offset);
      }
    }
    std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->name < b->name; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->name == order[i]->name) {
        return error("tensor '", printable(order[i]->name), "' appears twice");
      }
    }
    return Status();
  }

  std::string_view file_;
  ByteReader reader_;
  GgufContents contents_;
};

}  // namespace

Result<GgufContents> read_gguf(std::string_view file) { return GgufReader(file).read(); }

}  // namespace tinyvllm
