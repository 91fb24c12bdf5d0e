#include "io/safetensors_reader.h"

#include <algorithm>
#include <optional>
#include <set>

#include "io/byte_reader.h"
#include "io/json.h"

namespace tinyvllm {
namespace {

namespace dom = simdjson::dom;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr char kMetadataKey[] = "__metadata__";

struct NamedType {
  std::string_view name;
  DType dtype;
};
constexpr NamedType kTypes[] = {{"F32", DType::kF32}, {"F16", DType::kF16}, {"BF16", DType::kBF16}};

struct Range {
  uint64_t begin = 0, end = 0;
};

Result<dom::element> member(const dom::object& entry, const char* name, const std::string& who) {
  dom::element value;
  if (entry.at_key(name).get(value) != simdjson::SUCCESS) {
    return error(who, ": '", name, "' is missing");
  }
  return value;
}

Result<DType> read_dtype(const dom::object& entry, const std::string& who) {
  TRY_ASSIGN(const dom::element value, member(entry, "dtype", who));
  std::string_view name;
  if (value.get(name) != simdjson::SUCCESS) {
    return error(who, ": 'dtype' is ", json_kind(value), "; expected a string");
  }
  for (const NamedType& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  return error(who, ": dtype ", printable(name), " is not supported; expected F32, F16 or BF16");
}

// Checked so that the product cannot wrap: a dimension is at most the bytes of the file.
Result<Shape> read_shape(const dom::object& entry, uint64_t file_bytes, const std::string& who) {
  TRY_ASSIGN(const dom::element value, member(entry, "shape", who));
  dom::array sizes;
  if (value.get(sizes) != simdjson::SUCCESS) {
    return error(who, ": 'shape' is ", json_kind(value), "; expected a list of integers");
  }
  Shape shape;
  uint64_t elements = 1;
  for (const dom::element item : sizes) {
    if (shape.rank == kMaxRank) {
      return error(who, ": ", sizes.size(), " dimensions; expected at most ", kMaxRank);
    }
    uint64_t size = 0;
    if (item.get(size) != simdjson::SUCCESS) {
      return error(who, ": dimension ", shape.rank, " is ", json_kind(item),
                   "; expected a positive integer");
    }
    const uint64_t most = file_bytes / elements;
    if (size == 0) return error(who, ": dimension ", shape.rank, " is 0; expected at least 1");
    if (size > most) {
      return error(who, ": dimension ", shape.rank, " is ", size,
                   "; a file of this size can hold at most ", most);
    }
    elements *= size;
    shape.dims[static_cast<size_t>(shape.rank++)] = static_cast<int64_t>(size);
  }
  return shape;
}

Result<Range> read_range(const dom::object& entry, const std::string& who) {
  TRY_ASSIGN(const dom::element value, member(entry, "data_offsets", who));
  dom::array offsets;
  Range range;
  if (value.get(offsets) != simdjson::SUCCESS || offsets.size() != 2 ||
      offsets.at(0).get(range.begin) != simdjson::SUCCESS ||
      offsets.at(1).get(range.end) != simdjson::SUCCESS || range.end < range.begin) {
    return error(who, ": 'data_offsets' is ", printable(simdjson::minify(value)),
                 "; expected [begin, end]");
  }
  return range;
}

class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::string_view file) : file_(file) {}

  Result<std::vector<WeightTensor>> read() {
    TRY_ASSIGN(const std::string_view header, read_header());
    TRY_ASSIGN(const dom::element root, parse_json(parser_, header));
    dom::object entries;
    if (root.get(entries) != simdjson::SUCCESS) {
      return error("header: expected a JSON object, found ", json_kind(root));
    }
    data_start_ = sizeof(uint64_t) + header.size();
    for (const dom::key_value_pair entry : entries) {
      if (entry.key == kMetadataKey) continue;
      TRY(read_tensor(entry.key, entry.value));
    }
    TRY(check_cover());
    return std::move(tensors_);
  }

 private:
  Result<std::string_view> read_header() const {
    ByteReader reader(file_);
    uint64_t length = 0;
    std::string_view header;
    if (!reader.read(&length)) {
      return error("header length: the file ends after ", file_.size(), " bytes; expected 8");
    }
    if (length > kMaxHeaderBytes || !reader.read_bytes(length, &header)) {
      return error("offset 0: header length is ", length, "; expected at most ",
                   std::min(kMaxHeaderBytes, reader.remaining()), " in a file of ", file_.size(),
                   " bytes");
    }
    if (header.empty() || header[0] != '{') {
      return error("offset 8: expected a header that begins with '{', found '",
                   printable(header.substr(0, 8)), "'");
    }
    return header;
  }

  Status read_tensor(std::string_view name, const dom::element& value) {
    const std::string who = str_cat("tensor '", printable(name), "'");
    dom::object entry;
    if (value.get(entry) != simdjson::SUCCESS) {
      return error(who, ": expected an object with dtype, shape and data_offsets, found ",
                   json_kind(value));
    }
    if (!names_.insert(std::string(name)).second) return error(who, " appears twice");

    WeightTensor tensor;
    tensor.name = name;
    TRY_ASSIGN(tensor.view.dtype, read_dtype(entry, who));
    TRY_ASSIGN(tensor.view.shape, read_shape(entry, file_.size(), who));
    TRY_ASSIGN(const Range range, read_range(entry, who));
    const uint64_t data_bytes = file_.size() - data_start_;
    if (range.end > data_bytes) {
      return error(who, ": data_offsets [", range.begin, ", ", range.end, "] reach past the ",
                   data_bytes, " bytes of tensor data");
    }
    if (range.end - range.begin != tensor.view.bytes()) {
      return error(who, ": ", range.end - range.begin, " bytes; ", dtype_name(tensor.view.dtype),
                   " ", to_string(tensor.view.shape), " takes ", tensor.view.bytes());
    }
    tensor.file_offset = data_start_ + range.begin;
    tensor.view.data = file_.data() + tensor.file_offset;
    tensors_.push_back(std::move(tensor));
    return Status();
  }

  // In order of offset, each tensor begins where the one before it ended, and the last ends the
  // file.
  Status check_cover() {
    std::sort(tensors_.begin(), tensors_.end(), [](const WeightTensor& a, const WeightTensor& b) {
      return a.file_offset < b.file_offset;
    });
    uint64_t end = data_start_;
    for (const WeightTensor& tensor : tensors_) {
      if (tensor.file_offset != end) {
        return error("tensor '", printable(tensor.name), "' begins at data offset ",
                     tensor.file_offset - data_start_, "; the one before it ends at ",
                     end - data_start_);
      }
      end += tensor.view.bytes();
    }
    if (end != file_.size()) {
      return error("the tensors end at offset ", end, "; the file has ", file_.size(), " bytes");
    }
    return Status();
  }

  std::string_view file_;
  uint64_t data_start_ = 0;
  dom::parser parser_;
  std::set<std::string> names_;
  std::vector<WeightTensor> tensors_;
};

bool is_plain_file_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".safetensors";
  return name.size() > kSuffix.size() && name.size() < 256 && name.ends_with(kSuffix) &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace

Result<std::vector<WeightTensor>> read_safetensors(std::string_view file) {
  return SafetensorsReader(file).read();
}

Result<std::map<std::string, std::string>> read_safetensors_index(std::string_view json) {
  dom::parser parser;
  TRY_ASSIGN(const dom::element root, parse_json(parser, json));
  dom::object entries;
  if (root["weight_map"].get(entries) != simdjson::SUCCESS) {
    return error("expected an object with the key 'weight_map', which maps tensors to files");
  }
  std::map<std::string, std::string> files;
  for (const dom::key_value_pair entry : entries) {
    std::string_view file;
    if (entry.value.get(file) != simdjson::SUCCESS || !is_plain_file_name(file)) {
      return error("weight_map: tensor '", printable(entry.key), "' is in ",
                   printable(simdjson::minify(entry.value)),
                   "; expected the name of a .safetensors file in the same folder");
    }
    if (!files.emplace(entry.key, file).second) {
      return error("weight_map: tensor '", printable(entry.key), "' appears twice");
    }
  }
  if (files.empty()) return error("weight_map: expected at least one tensor");
  return files;
}

}  // namespace tinyvllm
