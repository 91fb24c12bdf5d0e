// Where the tests' files lie: in the tree that they were built from, or, for binaries that were
// built elsewhere, in the folder that TINYVLLM_TEST_DATA names.
#pragma once

#include <cstdlib>
#include <string>

namespace tinyvllm {

inline std::string test_data(const std::string& name) {
  const char* folder = std::getenv("TINYVLLM_TEST_DATA");
  return std::string(folder != nullptr ? folder : TEST_DATA) + "/" + name;
}

}  // namespace tinyvllm
