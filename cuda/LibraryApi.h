//===- LibraryApi.h - the parts of cuBLASLt and cuDNN that are used -------===//
//
// Own declarations of two C interfaces, so that nothing of them is needed to
// build. Types, fields, constants and functions have the names and the values
// that they have in the libraries' documentation; they stand in a namespace of
// their own. The functions are listed in BlasFunctions.def and DnnFunctions.def
// under the names by which the libraries export them.
//
// The same declarations are what the driver emulator (cuda/emulator)
// implements. Needs cuBLASLt 12.0 and cuDNN 9.0, or later of these or of
// cuBLASLt 13.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_LIBRARYAPI_H
#define TANDEM_CUDA_LIBRARYAPI_H

#include "cuda/DriverApi.h"

namespace tandem::cuda::library {

using driver::CUstream;

/// The oldest versions, as the libraries count them: 10000 * major + 100 *
/// minor + patch.
inline constexpr size_t oldestBlas = 120000, oldestDnn = 90000;

//===----------------------------------------------------------------------===//
// cuBLASLt
//===----------------------------------------------------------------------===//

enum cublasStatus_t : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};

enum cudaDataType_t : int {
  CUDA_R_32F = 0,
  CUDA_R_64F = 1,
  CUDA_R_16F = 2,
  CUDA_R_16BF = 14,
};

enum cublasComputeType_t : int {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

enum cublasOperation_t : int { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };

enum cublasLtMatmulDescAttributes_t : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
};

enum cublasLtEpilogue_t : int {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
};

enum cublasLtMatrixLayoutAttribute_t : int {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          ///< int32_t
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, ///< int64_t
};

enum cublasLtMatmulPreferenceAttributes_t : int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   ///< uint64_t
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, ///< uint32_t
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, ///< uint32_t, these four
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8,
};

/// Parts of sums are added up in the type of the sums.
inline constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2;

using cublasLtHandle_t = struct cublasLtContext *;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescStruct *;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutStruct *;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceStruct *;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};

struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

//===----------------------------------------------------------------------===//
// cuDNN
//===----------------------------------------------------------------------===//

enum cudnnStatus_t : int {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,
  CUDNN_STATUS_EXECUTION_FAILED = 5000,
};

enum cudnnDataType_t : int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_BFLOAT16 = 9,
};

enum cudnnTensorFormat_t : int { CUDNN_TENSOR_NCHW = 0 };
enum cudnnConvolutionMode_t : int { CUDNN_CROSS_CORRELATION = 1 };
enum cudnnDeterminism_t : int { CUDNN_DETERMINISTIC = 1 };

enum cudnnMathType_t : int {
  CUDNN_DEFAULT_MATH = 0, ///< of f32: tf32 is allowed
  CUDNN_TENSOR_OP_MATH = 1,
  CUDNN_FMA_MATH = 3,
};

using cudnnHandle_t = struct cudnnContext *;
using cudnnTensorDescriptor_t = struct cudnnTensorStruct *;
using cudnnFilterDescriptor_t = struct cudnnFilterStruct *;
using cudnnConvolutionDescriptor_t = struct cudnnConvolutionStruct *;

/// An algorithm of one of the three convolutions; the library has a type of
/// this form for each, whose `algo` is an enumeration.
struct cudnnConvolutionAlgoPerf_t {
  int algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};

//===----------------------------------------------------------------------===//
// The functions, opened at run time
//===----------------------------------------------------------------------===//

struct BlasFunctions {
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  result(*member) parameters = nullptr;
#include "cuda/BlasFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
};

struct DnnFunctions {
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  result(*member) parameters = nullptr;
#include "cuda/DnnFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
};

} // namespace tandem::cuda::library

#endif
