// safetensors files and index files that lie: refused in words that name the tensor or the field.
#include <gtest/gtest.h>

#include "allocation_meter.h"
#include "gguf_builder.h"
#include "io/safetensors_reader.h"
#include "safetensors_builder.h"

namespace tinyvllm {
namespace {

std::string complaint(const std::string& bytes) {
  const std::vector<char> exact(bytes.begin(), bytes.end());
  reset_largest_allocation();
  const auto tensors = read_safetensors({exact.data(), exact.size()});
  EXPECT_LT(largest_allocation(), size_t{64} << 10);
  return tensors.ok() ? "" : tensors.message();
}

void expect_refused(const std::string& bytes, const std::string& words) {
  EXPECT_NE(complaint(bytes).find(words), std::string::npos)
      << "expected: " << words << "\nfound:    " << complaint(bytes);
}

// A file of one tensor "t" with 8 bytes of data, the entry as given.
void expect_entry_refused(const std::string& entry, const std::string& words) {
  expect_refused(safetensors_file("{\"t\":" + entry + "}", 8), words);
}

TEST(HostileSafetensors, TheSoundFileIsAccepted) {
  EXPECT_EQ(complaint(tiny_safetensors()), "");
  EXPECT_EQ(complaint(safetensors_file("{}", 0)), "");
}

TEST(HostileSafetensors, TruncatedAnywhere) {
  const std::string file = tiny_safetensors();
  for (size_t cut = 0; cut < file.size(); ++cut) {
    EXPECT_NE(complaint(file.substr(0, cut)), "") << "cut at " << cut;
  }
  expect_refused("1234567", "header length: the file ends after 7 bytes");
  expect_refused(file + "x", "the tensors end at offset");
}

TEST(HostileSafetensors, EveryByteChanged) {
  const std::string file = tiny_safetensors();
  for (size_t at = 0; at < file.size() - 20; ++at) {
    for (const char value : {'\0', ' ', '"', '9', '}', ']', '\x7F', '\xFF'}) {
      std::string changed = file;
      changed[at] = value;
      complaint(changed);
    }
  }
}

TEST(HostileSafetensors, HeadersThatLieAboutTheirLength) {
  const std::string file = tiny_safetensors();
  for (const uint64_t length : {uint64_t{0}, file.size() - 7, uint64_t{1} << 31, uint64_t{1} << 63,
                                UINT64_MAX - 7, UINT64_MAX}) {
    std::string changed = file;
    expect_refused(changed.replace(0, 8, raw(length)),
                   length == 0 ? "offset 8: expected a header that begins with '{'"
                               : str_cat("offset 0: header length is ", length));
  }
  std::string shorter = file;
  expect_refused(shorter.replace(0, 8, raw<uint64_t>(60)), "not valid JSON");
}

TEST(HostileSafetensors, HeadersThatAreNotObjects) {
  expect_refused(safetensors_file("[]", 0), "begins with '{'");
  expect_refused(safetensors_file("{\"a\":}", 0), "not valid JSON");
  expect_refused(safetensors_file("{\"\xFF\":1}", 0), "not valid JSON");
  expect_refused(safetensors_file("{} {}", 0), "not valid JSON");
  const std::string deep = "{\"a\":" + std::string(2000, '[') + std::string(2000, ']') + "}";
  expect_refused(safetensors_file(deep, 0), "nested");
}

TEST(HostileSafetensors, EntriesThatAreNotTensors) {
  expect_entry_refused("7", "tensor 't': expected an object with dtype, shape and data_offsets");
  expect_entry_refused("{}", "tensor 't': 'dtype' is missing");
  expect_entry_refused(R"({"dtype":4})", "'dtype' is an integer; expected a string");
  expect_entry_refused(R"({"dtype":"F32"})", "'shape' is missing");
  expect_entry_refused(R"({"dtype":"F32","shape":2})", "'shape' is an integer");
  expect_entry_refused(R"({"dtype":"F32","shape":[2]})", "'data_offsets' is missing");
  for (const char* offsets : {"8", "[]", "[0]", "[0,8,8]", "[8,0]", "[-8,0]", "[0,8.0]", "[0,null]",
                              "[\"0\",\"8\"]", "[0,1e1]"}) {
    expect_entry_refused(str_cat(R"({"dtype":"F32","shape":[2],"data_offsets":)", offsets, "}"),
                         "expected [begin, end]");
  }
  for (const char* dtype :
       {"F64", "F8_E4M3", "F8_E5M2", "I64", "I32", "I16", "I8", "U8", "BOOL", "f32", "F4", ""}) {
    expect_entry_refused(
        str_cat(R"({"dtype":")", dtype, R"(","shape":[2],"data_offsets":[0,8]})"),
        str_cat("tensor 't': dtype ", dtype, " is not supported; expected F32, F16 or BF16"));
  }
}

TEST(HostileSafetensors, ShapesThatLie) {
  const auto shaped = [](const std::string& shape) {
    return str_cat(R"({"dtype":"F32","shape":)", shape, R"(,"data_offsets":[0,8]})");
  };
  EXPECT_EQ(complaint(safetensors_file("{\"t\":" + shaped("[1,2,1,1,1]") + "}", 8)), "");
  expect_entry_refused(shaped("[1,1,1,1,1,2]"), "6 dimensions; expected at most 5");
  expect_entry_refused(shaped("[0]"), "dimension 0 is 0; expected at least 1");
  expect_entry_refused(shaped("[2,0]"), "dimension 1 is 0");
  expect_entry_refused(shaped("[-2]"), "dimension 0 is an integer; expected a positive integer");
  expect_entry_refused(shaped("[2.5]"), "dimension 0 is a number");
  expect_entry_refused(shaped("[\"2\"]"), "dimension 0 is a string");
  expect_entry_refused(shaped("[[2]]"), "dimension 0 is a list");
  expect_entry_refused(shaped("[18446744073709551615]"), "dimension 0 is 18446744073709551615");
  expect_entry_refused(shaped("[18446744073709551616]"), "not valid JSON");
  expect_entry_refused(shaped("[2147483648]"), "dimension 0 is 2147483648");
  expect_entry_refused(shaped("[2,9223372036854775809]"), "dimension 1 is");  // wraps to 2
  expect_entry_refused(shaped("[4294967296,4294967296]"), "dimension 0");     // wraps to 0
  expect_entry_refused(shaped("[3]"), "tensor 't': 8 bytes; F32 [3] takes 12");
  expect_entry_refused(shaped("[]"), "8 bytes; F32 [] takes 4");
}

TEST(HostileSafetensors, RangesOutsideOverlappingOrWithHoles) {
  const auto two = [](uint64_t begin_b, uint64_t end_b, uint64_t data) {
    const std::string header = "{" + safetensors_entry("a", "F32", "[2]", 0, 8) + "," +
                               safetensors_entry("b", "F32", "[2]", begin_b, end_b) + "}";
    return safetensors_file(header, data);
  };
  EXPECT_EQ(complaint(two(8, 16, 16)), "");
  expect_refused(two(8, 16, 12), "tensor 'b': data_offsets [8, 16] reach past the 12 bytes");
  expect_refused(two(UINT64_MAX - 7, UINT64_MAX, 16), "tensor 'b': data_offsets");
  expect_refused(two(4, 12, 16), "tensor 'b' begins at data offset 4; the one before it ends at 8");
  expect_refused(two(0, 8, 8), "begins at data offset 0; the one before it ends at 8");
  expect_refused(two(12, 20, 20), "begins at data offset 12; the one before it ends at 8");
  expect_refused(two(8, 16, 24), "the tensors end at offset");
}

TEST(HostileSafetensors, TheSameTensorTwice) {
  const std::string header = "{" + safetensors_entry("a", "F32", "[2]", 0, 8) + "," +
                             safetensors_entry("a", "F32", "[2]", 8, 16) + "}";
  expect_refused(safetensors_file(header, 16), "tensor 'a' appears twice");
}

TEST(HostileSafetensors, IndexFiles) {
  const auto expect_index_refused = [](const std::string& json, const std::string& words) {
    const auto files = read_safetensors_index(json);
    ASSERT_FALSE(files.ok()) << json;
    EXPECT_NE(files.message().find(words), std::string::npos) << files.message();
  };
  expect_index_refused("", "not valid JSON");
  expect_index_refused("[]", "the key 'weight_map'");
  expect_index_refused("{}", "the key 'weight_map'");
  expect_index_refused(R"({"weight_map":[]})", "the key 'weight_map'");
  expect_index_refused(R"({"weight_map":{}})", "at least one tensor");
  expect_index_refused(R"({"weight_map":{"a":1}})", "tensor 'a' is in 1; expected the name of");
  for (const char* file :
       {"../x.safetensors", "/etc/x.safetensors", "a/x.safetensors", "x.bin", ".safetensors", "",
        "x.safetensors\\u0000", "model.safetensors.index.json"}) {
    expect_index_refused(str_cat(R"({"weight_map":{"a":")", file, R"("}})"),
                         "expected the name of a .safetensors file in the same folder");
  }
  expect_index_refused(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})",
                       "tensor 'a' appears twice");
}

}  // namespace
}  // namespace tinyvllm
