// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/matmul.h"

#include <cublasLt.h>

#include <memory>
#include <string>

#include "trainer/core/error.h"

namespace paceline::train::cuda {
namespace {

constexpr std::size_t work_bytes = std::size_t{32} << 20;  // NVIDIA's recommendation for Hopper

void check_blas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(std::string("cuBLASLt: ") + call, cublasLtGetStatusString(status),
              "check that the cuBLASLt found at run time is that of the build (ldd)");
}

cudaDataType_t blas_type(Storage storage) {
  return storage == Storage::f32 ? CUDA_R_32F : storage == Storage::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

cublasLtMatrixLayout_t matrix_layout(Storage storage, std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t result = nullptr;
  check_blas(cublasLtMatrixLayoutCreate(&result, blas_type(storage), static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows),
             "cublasLtMatrixLayoutCreate");
  return result;
}

}  // namespace

Blas::Blas() : work_(device_buffer(work_bytes)) {
  cublasLtHandle_t handle = nullptr;
  check_blas(cublasLtCreate(&handle), "cublasLtCreate");
  handle_ = handle;
}

Blas::~Blas() { cublasLtDestroy(static_cast<cublasLtHandle_t>(handle_)); }

// cuBLASLt's matrices are column-major, so ours are their transposes, and resultᵀ = op(right)ᵀ · op(left)ᵀ: its first
// operand is our right one, and a bias for each of its rows is one for each of our columns.
struct Matmul::Descriptions {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  ~Descriptions() {
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
    for (const cublasLtMatrixLayout_t one : {first, second, result}) {
      if (one != nullptr) cublasLtMatrixLayoutDestroy(one);
    }
  }

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    check_blas(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
  }
};

Matmul::Matmul(const Blas& blas, const MatmulShape& s, Precision precision, Storage result)
    : blas_(blas), of_(nullptr), bias_(s.bias) {
  auto of = std::make_unique<Descriptions>();
  const Storage storage = storage_of(precision);
  check_blas(
      cublasLtMatmulDescCreate(
          &of->operation, precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "cublasLtMatmulDescCreate");
  of->set(CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_right ? CUBLAS_OP_T : CUBLAS_OP_N);
  of->set(CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_left ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (s.bias) {
    of->set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    of->set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(blas_type(result)));
    of->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
            static_cast<const void*>(blas.work_.data()));  // as aligned as biases are
  }
  // A row-major a × b matrix is a matrix of b rows there.
  of->first =
      s.transpose_right ? matrix_layout(storage, s.inner, s.columns) : matrix_layout(storage, s.columns, s.inner);
  of->second = s.transpose_left ? matrix_layout(storage, s.rows, s.inner) : matrix_layout(storage, s.inner, s.rows);
  of->result = matrix_layout(result, s.columns, s.rows);

  cublasLtMatmulPreference_t preference = nullptr;
  check_blas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &work_bytes,
                                       sizeof work_bytes);
  // Partial sums of several blocks are added in fp32 too; by default they may be added as 16-bit numbers.
  constexpr std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction,
                                       sizeof reduction);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(static_cast<cublasLtHandle_t>(blas.handle_), of->operation, of->first, of->second,
                                     of->result, of->result, preference, 1, &found, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0) {
    throw Error("cuBLASLt",
                "no way to compute a product of " + std::to_string(s.rows) + " × " + std::to_string(s.inner) + " × " +
                    std::to_string(s.columns) + " in " + name_of(precision),
                "try another ‹dtype›");
  }
  of->algorithm = found.algo;
  of_ = of.release();
}

Matmul::~Matmul() { delete of_; }

void Matmul::run(cudaStream_t stream, const void* left, const void* right, void* result, const void* bias) const {
  if (bias_) of_->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const float one = 1, zero = 0;
  check_blas(cublasLtMatmul(static_cast<cublasLtHandle_t>(blas_.handle_), of_->operation, &one, right, of_->first, left,
                            of_->second, &zero, result, of_->result, result, of_->result, &of_->algorithm,
                            blas_.work_.data(), work_bytes, stream),
             "cublasLtMatmul");
}

}  // namespace paceline::train::cuda
