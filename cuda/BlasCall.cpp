//===- BlasCall.cpp - a product as a call of cuBLASLt ---------------------===//
//
// Matrices are row-major here and column-major there, so that every matrix is
// seen transposed, and the call is y^T = rhs^T lhs^T: A is rhs, B is lhs, and a
// bias along y's columns is one along D's rows.
//
//===----------------------------------------------------------------------===//
#include "cuda/Libraries.h"

#include <initializer_list>

namespace tandem::cuda {

using namespace library;
using artifact::DType;
using artifact::LibraryCall;

namespace {

cudaDataType_t typeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return CUDA_R_64F;
  case DType::F16:
    return CUDA_R_16F;
  case DType::BF16:
    return CUDA_R_16BF;
  default:
    return CUDA_R_32F;
  }
}

class BlasCall final : public PreparedCall {
public:
  BlasCall(Libraries &libraries, const LibraryCall &call, size_t workspaceBytes)
      : libraries(libraries), call(call), workspaceBytes(workspaceBytes) {}

  ~BlasCall() override {
    const BlasFunctions &blas = libraries.blas();
    if (desc)
      blas.descDestroy(desc);
    for (cublasLtMatrixLayout_t layout : {a, b, d})
      if (layout)
        blas.layoutDestroy(layout);
  }

  Status prepare();

  Status queue(driver::CUstream stream, std::span<void *const> buffers,
               void *workspace) override {
    auto at = [&](size_t operand) { return buffers[call.operands[operand]]; };
    if (hasBias()) {
      const void *bias = at(3);
      if (Status status =
              set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
          !status)
        return status;
    }
    // Of f64 the factors are f64, else f32.
    const double one = 1, zero = 0;
    const float oneF = 1, zeroF = 0;
    bool isDouble = call.dtype == DType::F64;
    const void *alpha = isDouble ? static_cast<const void *>(&one) : &oneF;
    const void *beta = isDouble ? static_cast<const void *>(&zero) : &zeroF;
    return libraries.check(
        libraries.blas().matmul(libraries.blasHandle, desc, alpha, at(1), a,
                                at(0), b, beta, at(2), d, at(2), d, &algo,
                                usedBytes ? alignedWorkspace(workspace)
                                          : nullptr,
                                usedBytes, stream),
        name());
  }

  const char *name() const override { return "cublasLtMatmul"; }

private:
  bool hasBias() const { return call.operands.size() > 3; }

  Status set(cublasLtMatmulDescAttributes_t attribute, const void *value,
             size_t bytes) {
    return libraries.check(
        libraries.blas().descSetAttribute(desc, attribute, value, bytes),
        "cublasLtMatmulDescSetAttribute");
  }

  Status makeLayout(cublasLtMatrixLayout_t &layout, int64_t rows,
                    int64_t columns, size_t operand);
  Status choose();

  Libraries &libraries;
  LibraryCall call;
  size_t workspaceBytes, usedBytes = 0;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algo = {};
};

/// `rows` is the size along which neighbours are side by side.
Status BlasCall::makeLayout(cublasLtMatrixLayout_t &layout, int64_t rows,
                            int64_t columns, size_t operand) {
  const BlasFunctions &blas = libraries.blas();
  if (Status status = libraries.check(
          blas.layoutCreate(&layout, typeOf(call.dtype),
                            static_cast<uint64_t>(rows),
                            static_cast<uint64_t>(columns), call.lds[operand]),
          "cublasLtMatrixLayoutCreate");
      !status)
    return status;
  auto count = static_cast<int32_t>(call.sizes[0]);
  if (count == 1)
    return Status::success();
  int64_t stride = call.batchStrides[operand];
  Status status = libraries.check(
      blas.layoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                              &count, sizeof(count)),
      "cublasLtMatrixLayoutSetAttribute");
  if (status.ok())
    status =
        libraries.check(blas.layoutSetAttribute(
                            layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                            &stride, sizeof(stride)),
                        "cublasLtMatrixLayoutSetAttribute");
  return status;
}

Status BlasCall::choose() {
  const BlasFunctions &blas = libraries.blas();
  cublasLtMatmulPreference_t preference = nullptr;
  Status status = libraries.check(blas.preferenceCreate(&preference),
                                  "cublasLtMatmulPreferenceCreate");
  if (!status)
    return status;
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                    const auto &value) {
    if (status.ok())
      status =
          libraries.check(blas.preferenceSetAttribute(preference, attribute,
                                                      &value, sizeof(value)),
                          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(workspaceBytes));
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  // As the manifest promises it of every buffer.
  const uint32_t alignment = 64;
  for (auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    prefer(attribute, alignment);
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  cublasStatus_t result = CUBLAS_STATUS_SUCCESS;
  if (status.ok())
    result = blas.getHeuristic(libraries.blasHandle, desc, a, b, d, d,
                               preference, 1, &best, &found);
  blas.preferenceDestroy(preference);
  if (!status)
    return status;
  if (result != CUBLAS_STATUS_NOT_SUPPORTED)
    if (status = libraries.check(result, "cublasLtMatmulAlgoGetHeuristic");
        !status)
      return status;
  if (result || found < 1 || best.state != CUBLAS_STATUS_SUCCESS ||
      best.workspaceSize > workspaceBytes)
    return Status::unsupported("cuBLASLt has no algorithm for the product");
  algo = best.algo;
  usedBytes = best.workspaceSize;
  return Status::success();
}

Status BlasCall::prepare() {
  const BlasFunctions &blas = libraries.blas();
  bool isDouble = call.dtype == DType::F64;
  cublasComputeType_t compute = isDouble    ? CUBLAS_COMPUTE_64F
                                : call.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
  Status status = libraries.check(
      blas.descCreate(&desc, compute, isDouble ? CUDA_R_64F : CUDA_R_32F),
      "cublasLtMatmulDescCreate");
  auto setNumber = [&](cublasLtMatmulDescAttributes_t attribute, int value) {
    if (status.ok())
      status = set(attribute, &value, sizeof(value));
  };
  setNumber(CUBLASLT_MATMUL_DESC_TRANSA,
            call.transposes[1] ? CUBLAS_OP_T : CUBLAS_OP_N);
  setNumber(CUBLASLT_MATMUL_DESC_TRANSB,
            call.transposes[0] ? CUBLAS_OP_T : CUBLAS_OP_N);
  setNumber(CUBLASLT_MATMUL_DESC_EPILOGUE,
            hasBias()   ? call.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                    : CUBLASLT_EPILOGUE_BIAS
            : call.relu ? CUBLASLT_EPILOGUE_RELU
                        : CUBLASLT_EPILOGUE_DEFAULT);
  if (status.ok() && hasBias()) {
    // Its alignment is asked for before there is one.
    void *bias = reinterpret_cast<void *>(artifact::bufferAlignment);
    status = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
  }
  int64_t m = call.sizes[1], n = call.sizes[2], k = call.sizes[3];
  if (status.ok())
    status =
        call.transposes[1] ? makeLayout(a, k, n, 1) : makeLayout(a, n, k, 1);
  if (status.ok())
    status =
        call.transposes[0] ? makeLayout(b, m, k, 0) : makeLayout(b, k, m, 0);
  if (status.ok())
    status = makeLayout(d, n, m, 2);
  return status.ok() ? choose() : status;
}

} // namespace

Result<std::unique_ptr<PreparedCall>> prepareBlas(Libraries &libraries,
                                                  const LibraryCall &call,
                                                  size_t workspaceBytes) {
  auto made = std::make_unique<BlasCall>(libraries, call, workspaceBytes);
  if (Status status = made->prepare(); !status)
    return status;
  return Result<std::unique_ptr<PreparedCall>>(std::move(made));
}

} // namespace tandem::cuda
