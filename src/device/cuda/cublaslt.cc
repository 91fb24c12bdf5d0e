#include "device/cuda/cublaslt.h"

#include <algorithm>
#include <cstdlib>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <iterator>
#include <string>

namespace tinyvllm {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA advises for Hopper
// Asking for an algorithm and loading its kernel take 2 ms, and prompts come in every length: one
// serves all numbers of rows up to the next of these. Beyond them, multiples of the last.
constexpr int64_t kBuckets[] = {16,  32,  64,   96,   128,  192,  256, 384,
                                512, 768, 1024, 1536, 2048, 4096, 8192};

void* open_library() {
  const std::string version = std::to_string(CUDART_VERSION / 1000);
  const std::string name = "libcublasLt.so." + version;
  std::string folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda-" + version + "/lib64/"};
  for (const std::string& folder : folders) {
    if (void* library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

int64_t bucket_of(int64_t rows) {
  const auto* const bucket = std::lower_bound(std::begin(kBuckets), std::end(kBuckets), rows);
  if (bucket != std::end(kBuckets)) return *bucket;
  const int64_t last = kBuckets[std::size(kBuckets) - 1];
  return (rows + last - 1) / last * last;
}

void check(cublasStatus_t status, const char* what) {
  CHECK(status == CUBLAS_STATUS_SUCCESS)
      << what << ": cuBLASLt status " << static_cast<int>(status);
}

}  // namespace

// The functions used, under their own names.
#define TINYVLLM_LT_FUNCTIONS(each)           \
  each(cublasLtCreate);                       \
  each(cublasLtDestroy);                      \
  each(cublasLtMatmul);                       \
  each(cublasLtMatmulDescCreate);             \
  each(cublasLtMatmulDescDestroy);            \
  each(cublasLtMatmulDescSetAttribute);       \
  each(cublasLtMatrixLayoutCreate);           \
  each(cublasLtMatrixLayoutDestroy);          \
  each(cublasLtMatrixLayoutSetAttribute);     \
  each(cublasLtMatmulAlgoCheck);              \
  each(cublasLtMatmulPreferenceCreate);       \
  each(cublasLtMatmulPreferenceDestroy);      \
  each(cublasLtMatmulPreferenceSetAttribute); \
  each(cublasLtMatmulAlgoGetHeuristic)

struct CublasLt::Library {
  void* handle = nullptr;
#define TINYVLLM_LT(name) decltype(&::name) name = nullptr
  TINYVLLM_LT_FUNCTIONS(TINYVLLM_LT);
#undef TINYVLLM_LT

  Status load() {
    handle = open_library();
    if (handle == nullptr) {
      return tinyvllm::error("cuBLASLt was not found: ", dlerror(), "; install the CUDA ",
                             CUDART_VERSION / 1000, " libraries or set LD_LIBRARY_PATH");
    }
    const char* missing = nullptr;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      if (function == nullptr) missing = name;
    };
#define TINYVLLM_LT(name) find(name, #name)
    TINYVLLM_LT_FUNCTIONS(TINYVLLM_LT);
#undef TINYVLLM_LT
    if (missing != nullptr) return tinyvllm::error("cuBLASLt has no function ", missing);
    return Status();
  }
};

struct CublasLt::Plan {
  explicit Plan(const Library& l) : library(l) {}
  ~Plan() {
    if (desc != nullptr) library.cublasLtMatmulDescDestroy(desc);
    for (cublasLtMatrixLayout_t layout : {w, x, y}) {
      if (layout != nullptr) library.cublasLtMatrixLayoutDestroy(layout);
    }
  }
  const Library& library;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t w = nullptr;
  cublasLtMatrixLayout_t x = nullptr;
  cublasLtMatrixLayout_t y = nullptr;
  int64_t rows = 0;  // that the layouts say
  int64_t out = 0;
  int64_t in = 0;
  cublasLtMatmulAlgo_t algorithm{};
  cublasLtMatmulAlgo_t of_bucket{};
};

CublasLt::CublasLt() : library_(std::make_unique<Library>()) {}

Result<std::unique_ptr<CublasLt>> CublasLt::open() {
  std::unique_ptr<CublasLt> lt(new CublasLt());
  TRY(lt->library_->load());
  auto* handle = reinterpret_cast<cublasLtHandle_t*>(&lt->handle_);
  if (const auto status = lt->library_->cublasLtCreate(handle); status != CUBLAS_STATUS_SUCCESS) {
    return error("cuBLASLt did not start: status ", static_cast<int>(status));
  }
  if (cudaMalloc(&lt->workspace_, kWorkspaceBytes) != cudaSuccess) {
    size_t free_bytes = 0;
    size_t total = 0;
    cudaMemGetInfo(&free_bytes, &total);
    cudaGetLastError();  // so that it is not taken for the next call's
    return error("out of device memory: 32 MB for cuBLASLt, ",
                 human_bytes(static_cast<double>(free_bytes)), " free");
  }
  return lt;
}

CublasLt::~CublasLt() {
  plans_.clear();
  if (workspace_ != nullptr) cudaFree(workspace_);
  if (handle_ != nullptr) library_->cublasLtDestroy(static_cast<cublasLtHandle_t>(handle_));
}

// cuBLASLt thinks in columns: y^T [out, rows] = W^T^T x^T, where rows of ours are its columns.
Result<CublasLt::Plan*> CublasLt::plan_for(const Product& p) {
  const int64_t bucket = bucket_of(p.rows);
  const Key key{bucket,     p.out,       p.in,   p.w_stride, p.x_stride,
                p.y_stride, p.y_is_half, p.bf16, p.add};
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second.get();
  const Library& lt = *library_;
  auto plan = std::make_unique<Plan>(lt);
  check(lt.cublasLtMatmulDescCreate(&plan->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "a product");
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check(lt.cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                          sizeof transposed),
        "transposed weights");
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  const cudaDataType_t half = p.bf16 ? CUDA_R_16BF : CUDA_R_16F;
  const cudaDataType_t result = p.y_is_half ? half : CUDA_R_32F;
  check(lt.cublasLtMatrixLayoutCreate(&plan->w, half, size(p.in), size(p.out), p.w_stride), "W");
  check(lt.cublasLtMatrixLayoutCreate(&plan->x, half, size(p.in), size(bucket), p.x_stride), "x");
  check(lt.cublasLtMatrixLayoutCreate(&plan->y, result, size(p.out), size(bucket), p.y_stride),
        "y");
  plan->rows = bucket;
  plan->out = p.out;
  plan->in = p.in;
  TRY(ask(*plan));
  plan->of_bucket = plan->algorithm;
  return (plans_[key] = std::move(plan)).get();
}

Status CublasLt::ask(Plan& plan) {
  const Library& lt = *library_;
  cublasLtMatmulPreference_t preference = nullptr;
  check(lt.cublasLtMatmulPreferenceCreate(&preference), "a preference");
  check(
      lt.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &kWorkspaceBytes, sizeof kWorkspaceBytes),
      "a workspace");
  const uint32_t alignment = 16;  // what rows and columns are cut at
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    check(lt.cublasLtMatmulPreferenceSetAttribute(preference, which, &alignment, sizeof alignment),
          "an alignment");
  }
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const auto status =
      lt.cublasLtMatmulAlgoGetHeuristic(static_cast<cublasLtHandle_t>(handle_), plan.desc, plan.w,
                                        plan.x, plan.y, plan.y, preference, 1, &best, &found);
  lt.cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || found != 1) {
    return error("cuBLASLt has no algorithm for [", plan.rows, ", ", plan.in, "] × [", plan.out,
                 ", ", plan.in, "]: status ", static_cast<int>(status));
  }
  plan.algorithm = best.algo;
  return Status();
}

// An algorithm is a kernel and how it is launched, not a number of rows; where it does not take
// these after all, there is one that does.
Status CublasLt::set_rows(Plan& plan, int64_t rows) {
  if (plan.rows == rows) return Status();
  const Library& lt = *library_;
  const auto columns = static_cast<uint64_t>(rows);
  for (cublasLtMatrixLayout_t layout : {plan.x, plan.y}) {
    check(lt.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &columns,
                                              sizeof columns),
          "rows");
  }
  plan.rows = rows;
  plan.algorithm = plan.of_bucket;
  cublasLtMatmulHeuristicResult_t needs{};
  const auto status =
      lt.cublasLtMatmulAlgoCheck(static_cast<cublasLtHandle_t>(handle_), plan.desc, plan.w, plan.x,
                                 plan.y, plan.y, &plan.algorithm, &needs);
  if (status == CUBLAS_STATUS_SUCCESS && needs.workspaceSize <= kWorkspaceBytes) return Status();
  return ask(plan);
}

Status CublasLt::multiply(const Product& p, CUstream_st* stream) {
  if (p.rows == 0) return Status();
  TRY_ASSIGN(Plan* const plan, plan_for(p));
  TRY(set_rows(*plan, p.rows));
  const float alpha = 1;
  const float beta = p.add ? 1 : 0;
  const auto status = library_->cublasLtMatmul(
      static_cast<cublasLtHandle_t>(handle_), plan->desc, &alpha, p.w, plan->w, p.x, plan->x, &beta,
      p.y, plan->y, p.y, plan->y, &plan->algorithm, workspace_, kWorkspaceBytes, stream);
  if (status == CUBLAS_STATUS_SUCCESS) return Status();
  return error("cuBLASLt status ", static_cast<int>(status));
}

}  // namespace tinyvllm
