// Large matrix products of halves through cuBLASLt, which is loaded when a device is opened: a
// machine without it gets a sentence, not a loader's error.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "base/result.h"

struct CUstream_st;

namespace tinyvllm {

class CublasLt {
 public:
  static Result<std::unique_ptr<CublasLt>> open();
  ~CublasLt();

  // y = W x + beta · y.  w: [out, in] halves, rows w_stride apart; x: [rows, in] halves; y: [rows,
  // out] halves or floats.
  struct Product {
    const void* w = nullptr;
    const void* x = nullptr;
    void* y = nullptr;
    int64_t rows = 0;
    int64_t out = 0;
    int64_t in = 0;
    int64_t w_stride = 0;
    int64_t x_stride = 0;
    int64_t y_stride = 0;
    bool y_is_half = false;
    bool bf16 = false;  // the halves are bfloat16
    bool add = false;
  };
  Status multiply(const Product& product, CUstream_st* stream);

 private:
  struct Library;
  struct Plan;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, bool>;

  CublasLt();
  Result<Plan*> plan_for(const Product& product);
  Status ask(Plan& plan);
  Status set_rows(Plan& plan, int64_t rows);

  std::unique_ptr<Library> library_;
  void* handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;  // by shape, rows in buckets
};

}  // namespace tinyvllm
