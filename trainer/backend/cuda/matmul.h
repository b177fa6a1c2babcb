// SPDX-License-Identifier: Apache-2.0
// Matrix products through cuBLASLt, for linear layers. Matrices are row-major.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/backend/cuda/precision.h"
#include "trainer/backend/cuda/runtime.h"

namespace paceline::train::cuda {

class Blas {
 public:
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

 private:
  friend class Matmul;
  void* handle_ = nullptr;  // cublasLtHandle_t
  Buffer work_;
};

// result = op(left) · op(right), + bias. result is rows × columns; op(left) rows × inner; a transposed operand is
// stored as inner × rows or columns × inner.
struct MatmulShape {
  std::int64_t rows = 1, columns = 1, inner = 1;
  bool transpose_left = false, transpose_right = false;
  bool bias = false;  // one for each column, in the result's storage
};

class Matmul {
 public:
  // The operands have the storage of the precision; sums are fp32. Throws Error if cuBLASLt has no algorithm.
  Matmul(const Blas& blas, const MatmulShape& shape, Precision precision, Storage result);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // Asynchronous; may be captured. bias: null if the shape has none.
  void run(cudaStream_t stream, const void* left, const void* right, void* result, const void* bias = nullptr) const;

 private:
  struct Descriptions;
  const Blas& blas_;
  Descriptions* of_;
  bool bias_;
};

}  // namespace paceline::train::cuda
