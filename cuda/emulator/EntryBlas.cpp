//===- EntryBlas.cpp - the functions of cuBLASLt, emulated ----------------===//
//
// One algorithm, which wants a workspace where it may have one, and computes
// with plain loops.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/LibraryMemory.h"

#include <cmath>
#include <cstring>

namespace tandem::cuda::library {

extern "C" {
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  __attribute__((visibility("default"))) result symbol parameters;
#include "cuda/BlasFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
}

struct cublasLtContext {
  emulator::Device *device;
};

struct cublasLtMatmulDescStruct {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  int epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
};

struct cublasLtMatrixLayoutStruct {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batches = 1;
  int64_t stride = 0;
};

struct cublasLtMatmulPreferenceStruct {
  uint64_t workspaceBytes = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace {

using namespace emulator;

constexpr uint64_t algorithmMark = 0x7a4d31;

template <typename T>
cublasStatus_t take(T &to, const void *value, size_t bytes) {
  if (!value || bytes != sizeof(T))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/// A product whose descriptions fit each other.
struct Product {
  Element element = Element::F32;
  cublasLtMatmulDescStruct desc;
  cublasLtMatrixLayoutStruct a, b, d;
  uint64_t m = 0, n = 0, k = 0;

  uintptr_t at(uintptr_t base, const cublasLtMatrixLayoutStruct &layout,
               int64_t batch) const {
    return base +
           static_cast<uintptr_t>(batch * layout.stride) * bytesOf(element);
  }
};

bool isLayout(const cublasLtMatrixLayoutStruct &layout) {
  return elementOf(layout.type) && layout.rows && layout.columns &&
         layout.ld >= static_cast<int64_t>(layout.rows) &&
         layout.batches >= 1 && layout.stride >= 0;
}

/// What is wrong with the descriptions, or success.
cublasStatus_t check(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                     cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                     Product &product) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!desc || !a || !b || !c || !d || !isLayout(*a) || !isLayout(*b) ||
      !isLayout(*c) || !isLayout(*d))
    return CUBLAS_STATUS_INVALID_VALUE;
  product.desc = *desc;
  product.a = *a;
  product.b = *b;
  product.d = *d;
  product.element = *elementOf(d->type);
  bool isA = desc->transA == CUBLAS_OP_T, isB = desc->transB == CUBLAS_OP_T;
  product.m = isA ? a->columns : a->rows;
  product.k = isA ? a->rows : a->columns;
  product.n = isB ? b->rows : b->columns;
  bool isDouble = product.element == Element::F64;
  bool areTypes = a->type == d->type && b->type == d->type &&
                  c->type == d->type &&
                  desc->scale == (isDouble ? CUDA_R_64F : CUDA_R_32F) &&
                  (desc->compute == CUBLAS_COMPUTE_64F) == isDouble &&
                  (desc->compute != CUBLAS_COMPUTE_32F_FAST_TF32 ||
                   product.element == Element::F32);
  bool areSizes = (isB ? b->columns : b->rows) == product.k &&
                  d->rows == product.m && d->columns == product.n &&
                  c->rows == d->rows && c->columns == d->columns &&
                  a->batches == d->batches && b->batches == d->batches &&
                  c->batches == d->batches;
  if (!areTypes || !areSizes)
    return CUBLAS_STATUS_INVALID_VALUE;
  bool hasBias = desc->epilogue & CUBLASLT_EPILOGUE_BIAS;
  if ((desc->epilogue & ~CUBLASLT_EPILOGUE_RELU_BIAS) > 1 ||
      (hasBias && !desc->bias))
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

/// Says that a matrix is read or written.
bool use(Execution &execution, const Product &product,
         const cublasLtMatrixLayoutStruct &layout, uintptr_t base,
         bool isWrite) {
  size_t bytes = bytesOf(product.element);
  for (int32_t batch = 0; batch < layout.batches; ++batch)
    for (uint64_t column = 0; column < layout.columns; ++column) {
      uintptr_t at = product.at(base, layout, batch) +
                     column * static_cast<uint64_t>(layout.ld) * bytes;
      size_t length = layout.rows * bytes;
      if (!(isWrite ? execution.write(at, length) : execution.read(at, length)))
        return false;
    }
  return true;
}

void run(Execution &execution, const Product &p, uintptr_t a, uintptr_t b,
         uintptr_t d, double alpha, uintptr_t workspace,
         size_t workspaceBytes) {
  auto bias = reinterpret_cast<uintptr_t>(p.desc.bias);
  bool hasBias = p.desc.epilogue & CUBLASLT_EPILOGUE_BIAS;
  bool hasRelu = p.desc.epilogue & CUBLASLT_EPILOGUE_RELU;
  if (!use(execution, p, p.a, a, false) || !use(execution, p, p.b, b, false) ||
      (hasBias && !execution.read(bias, p.m * bytesOf(p.element))) ||
      !use(execution, p, p.d, d, true) ||
      (workspaceBytes && !useWorkspace(execution, workspace, workspaceBytes)))
    return;
  auto stepsOf = [](const cublasLtMatrixLayoutStruct &layout, bool transposed) {
    auto ld = static_cast<size_t>(layout.ld);
    return transposed ? std::pair<size_t, size_t>(ld, 1)
                      : std::pair<size_t, size_t>(1, ld);
  };
  auto [aRow, aK] = stepsOf(p.a, p.desc.transA == CUBLAS_OP_T);
  auto [bK, bColumn] = stepsOf(p.b, p.desc.transB == CUBLAS_OP_T);
  for (int32_t batch = 0; batch < p.d.batches; ++batch) {
    uintptr_t from = p.at(a, p.a, batch), with = p.at(b, p.b, batch),
              to = p.at(d, p.d, batch);
    for (uint64_t j = 0; j < p.n; ++j)
      for (uint64_t i = 0; i < p.m; ++i) {
        double sum = 0;
        for (uint64_t k = 0; k < p.k; ++k)
          sum += load(p.element, from, i * aRow + k * aK) *
                 load(p.element, with, k * bK + j * bColumn);
        sum *= alpha;
        if (hasBias)
          sum += load(p.element, bias, i);
        if (hasRelu && !(sum > 0) && !std::isnan(sum))
          sum = 0;
        store(p.element, to, i + j * static_cast<uint64_t>(p.d.ld), sum);
      }
  }
}

} // namespace

size_t cublasLtGetVersion() {
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard(m.lock);
  return m.failures.blasVersion ? static_cast<size_t>(m.failures.blasVersion)
                                : 130000;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "success";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "an unsupported value or parameter was passed to the function";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "the function failed to launch on the GPU";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "the requested functionality is not supported";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "the library was not initialized";
  default:
    return "an internal operation failed";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  cublasStatus_t result = CUBLAS_STATUS_NOT_INITIALIZED;
  withDevice([&](Machine &, Device &device) {
    if (handle) {
      *handle = new cublasLtContext{&device};
      result = CUBLAS_STATUS_SUCCESS;
    }
    return driver::CUDA_SUCCESS;
  });
  return result;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (!desc)
    return CUBLAS_STATUS_INVALID_VALUE;
  *desc = new cublasLtMatmulDescStruct;
  (*desc)->compute = compute;
  (*desc)->scale = scale;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t bytes) {
  if (!desc)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return take(desc->transA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return take(desc->transB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return take(desc->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return take(desc->bias, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  if (!layout)
    return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new cublasLtMatrixLayoutStruct{type, rows, columns, ld};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t bytes) {
  if (!layout)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return take(layout->batches, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return take(layout->stride, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  if (!preference)
    return CUBLAS_STATUS_INVALID_VALUE;
  *preference = new cublasLtMatmulPreferenceStruct;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
    size_t bytes) {
  if (!preference)
    return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return take(preference->workspaceBytes, value, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return take(preference->reductions, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return take(
        preference->alignments[attribute -
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
        value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int asked,
    cublasLtMatmulHeuristicResult_t *results, int *found) {
  Product product;
  if (cublasStatus_t status = check(handle, desc, a, b, c, d, product))
    return status;
  if (!preference || asked < 1 || !results || !found)
    return CUBLAS_STATUS_INVALID_VALUE;
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard(m.lock);
  *found = 0;
  if (m.failures.strikes(Failures::Algorithm))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = 1;
  results[0] = {};
  results[0].workspaceSize =
      preference->workspaceBytes >= libraryWorkspace ? libraryWorkspace : 0;
  results[0].algo.data[0] = algorithmMark;
  results[0].algo.data[1] = results[0].workspaceSize;
  results[0].algo.data[2] = product.m;
  results[0].algo.data[3] = product.n;
  results[0].algo.data[4] = product.k;
  results[0].wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
               const void *alpha, const void *a, cublasLtMatrixLayout_t aLayout,
               const void *b, cublasLtMatrixLayout_t bLayout, const void *beta,
               const void *c, cublasLtMatrixLayout_t cLayout, void *d,
               cublasLtMatrixLayout_t dLayout, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t workspaceBytes, CUstream stream) {
  Product product;
  if (cublasStatus_t status =
          check(handle, desc, aLayout, bLayout, cLayout, dLayout, product))
    return status;
  if (!alpha || !beta || !a || !b || !c || !d || !algo)
    return CUBLAS_STATUS_INVALID_VALUE;
  bool isDouble = product.element == Element::F64;
  double factor, old;
  if (isDouble) {
    std::memcpy(&factor, alpha, sizeof(double));
    std::memcpy(&old, beta, sizeof(double));
  } else {
    float values[2];
    std::memcpy(&values[0], alpha, sizeof(float));
    std::memcpy(&values[1], beta, sizeof(float));
    factor = static_cast<double>(values[0]);
    old = static_cast<double>(values[1]);
  }
  const uint64_t made[] = {algorithmMark, algo->data[1], product.m, product.n,
                           product.k};
  if (old != 0 || std::memcmp(made, algo->data, sizeof(made)) != 0 ||
      workspaceBytes < algo->data[1] ||
      (algo->data[1] && (!workspace || reinterpret_cast<uintptr_t>(workspace) %
                                           libraryAlignment)))
    return CUBLAS_STATUS_INVALID_VALUE;
  auto at = [](const void *p) { return reinterpret_cast<uintptr_t>(p); };
  double flops = 2.0 * static_cast<double>(product.m) *
                 static_cast<double>(product.n) *
                 static_cast<double>(product.k) * product.d.batches;
  auto queued = pushLibraryCall(
      stream, "cublasLtMatmul", flops,
      [=, from = at(a), with = at(b), to = at(d), room = at(workspace),
       bytes = static_cast<size_t>(algo->data[1])](Execution &execution) {
        run(execution, product, from, with, to, factor, room, bytes);
      });
  return queued ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

} // namespace tandem::cuda::library
