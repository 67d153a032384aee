//===- EntryDnn.cpp - the functions of cuDNN, emulated --------------------===//
//
// Three algorithms: one that would not give the same bits every time, one that
// wants more workspace than there ever is, and one that is as it should be.
// Only this one computes, with plain loops.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/LibraryMemory.h"

#include <array>
#include <cstring>

namespace tandem::cuda::library {

extern "C" {
#define TANDEM_LIBRARY_FUNCTION(member, symbol, result, parameters)            \
  __attribute__((visibility("default"))) result symbol parameters;
#include "cuda/DnnFunctions.def"
#undef TANDEM_LIBRARY_FUNCTION
}

struct cudnnContext {
  CUstream stream = nullptr;
};

struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::array<int, 4> sizes = {};
};

struct cudnnFilterStruct : cudnnTensorStruct {};

struct cudnnConvolutionStruct {
  std::array<int, 2> padding = {}, strides = {}, dilation = {};
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int groups = 1;
};

namespace {

using namespace emulator;

enum Algorithm { AnyOrder, Huge, Good, Algorithms };

bool set(cudnnTensorStruct *tensor, cudnnDataType_t type,
         std::array<int, 4> sizes) {
  if (!tensor || !elementOf(type))
    return false;
  for (int size : sizes)
    if (size < 1)
      return false;
  tensor->type = type;
  tensor->sizes = sizes;
  return true;
}

/// A convolution whose descriptions fit each other.
struct Convolution {
  Element element = Element::F32;
  cudnnTensorStruct x, w, y;
  cudnnConvolutionStruct how;

  bool is(const cudnnTensorStruct *itsX, const cudnnTensorStruct *itsW,
          const cudnnConvolutionStruct *its, const cudnnTensorStruct *itsY) {
    if (!itsX || !itsW || !its || !itsY || !itsX->sizes[0] || !itsW->sizes[0] ||
        !itsY->sizes[0] || !its->strides[0])
      return false;
    x = *itsX;
    w = *itsW;
    y = *itsY;
    how = *its;
    element = *elementOf(x.type);
    bool isHalf = element == Element::F16 || element == Element::BF16;
    bool fits = x.type == w.type && x.type == y.type &&
                how.compute == (isHalf ? CUDNN_DATA_FLOAT : x.type) &&
                x.sizes[0] == y.sizes[0] && w.sizes[0] == y.sizes[1] &&
                w.sizes[1] * how.groups == x.sizes[1] &&
                w.sizes[0] % how.groups == 0;
    for (size_t d = 0; d < 2; ++d) {
      int seen = x.sizes[2 + d] + 2 * how.padding[d] -
                 (w.sizes[2 + d] - 1) * how.dilation[d] - 1;
      fits &= seen >= 0 && seen / how.strides[d] + 1 == y.sizes[2 + d];
    }
    return fits;
  }

  double flops() const {
    return 2.0 * y.sizes[0] * y.sizes[1] * y.sizes[2] * y.sizes[3] *
           w.sizes[1] * w.sizes[2] * w.sizes[3];
  }

  /// Calls `body` with the positions in x, w and y of each product.
  template <typename Body> void each(Body body) const;
};

size_t elements(const cudnnTensorStruct &tensor) {
  size_t count = 1;
  for (int size : tensor.sizes)
    count *= static_cast<size_t>(size);
  return count;
}

size_t position(const cudnnTensorStruct &tensor, int a, int b, int c, int d) {
  const auto &s = tensor.sizes;
  auto at = static_cast<size_t>(a);
  at = at * static_cast<size_t>(s[1]) + static_cast<size_t>(b);
  at = at * static_cast<size_t>(s[2]) + static_cast<size_t>(c);
  return at * static_cast<size_t>(s[3]) + static_cast<size_t>(d);
}

template <typename Body> void Convolution::each(Body body) const {
  int filters = w.sizes[0] / how.groups;
  for (int n = 0; n < y.sizes[0]; ++n)
    for (int o = 0; o < y.sizes[1]; ++o)
      for (int oh = 0; oh < y.sizes[2]; ++oh)
        for (int ow = 0; ow < y.sizes[3]; ++ow)
          for (int c = 0; c < w.sizes[1]; ++c)
            for (int kh = 0; kh < w.sizes[2]; ++kh)
              for (int kw = 0; kw < w.sizes[3]; ++kw) {
                int h =
                    oh * how.strides[0] - how.padding[0] + kh * how.dilation[0];
                int v =
                    ow * how.strides[1] - how.padding[1] + kw * how.dilation[1];
                if (h < 0 || h >= x.sizes[2] || v < 0 || v >= x.sizes[3])
                  continue;
                int channel = o / filters * w.sizes[1] + c;
                body(position(x, n, channel, h, v), position(w, o, c, kh, kw),
                     position(y, n, o, oh, ow));
              }
}

enum class Which { Y, X, W };

cudnnStatus_t algorithms(cudnnHandle_t handle, const Convolution &convolution,
                         int asked, int *found,
                         cudnnConvolutionAlgoPerf_t *results) {
  if (!handle || asked < 1 || !found || !results)
    return CUDNN_STATUS_BAD_PARAM;
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard(m.lock);
  *found = 0;
  if (m.failures.strikes(Failures::Algorithm))
    return CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < std::min<int>(asked, Algorithms); ++i) {
    results[i] = {};
    results[i].algo = i;
    results[i].memory = i == Huge ? size_t(1) << 40 : libraryWorkspace;
    results[i].determinism =
        i == AnyOrder ? cudnnDeterminism_t(0) : CUDNN_DETERMINISTIC;
    results[i].mathType = convolution.how.math;
    ++*found;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t compute(cudnnHandle_t handle, const char *name, Which which,
                      const Convolution &c, const void *alpha, const void *x,
                      const void *w, int algorithm, void *workspace,
                      size_t workspaceBytes, const void *beta, const void *y) {
  const double zero = 0;
  if (!handle || !alpha || !beta || !x || !w || !y || algorithm != Good ||
      !workspace || workspaceBytes < libraryWorkspace ||
      reinterpret_cast<uintptr_t>(workspace) % libraryAlignment ||
      std::memcmp(beta, &zero, c.element == Element::F64 ? 8 : 4) != 0)
    return CUDNN_STATUS_BAD_PARAM;
  auto at = [](const void *p) { return reinterpret_cast<uintptr_t>(p); };
  auto run = [=, xs = at(x), ws = at(w), ys = at(y),
              room = at(workspace)](Execution &execution) {
    auto use = [&](const cudnnTensorStruct &tensor, uintptr_t base,
                   bool isWrite) {
      size_t bytes = elements(tensor) * bytesOf(c.element);
      return isWrite ? execution.write(base, bytes)
                     : execution.read(base, bytes);
    };
    if (!use(c.x, xs, which == Which::X) || !use(c.w, ws, which == Which::W) ||
        !use(c.y, ys, which == Which::Y) ||
        !useWorkspace(execution, room, libraryWorkspace))
      return;
    const cudnnTensorStruct &result = which == Which::X   ? c.x
                                      : which == Which::W ? c.w
                                                          : c.y;
    std::vector<double> sums(elements(result));
    c.each([&](size_t xAt, size_t wAt, size_t yAt) {
      auto of = [&](uintptr_t base, size_t index) {
        return load(c.element, base, index);
      };
      if (which == Which::Y)
        sums[yAt] += of(xs, xAt) * of(ws, wAt);
      else if (which == Which::X)
        sums[xAt] += of(ws, wAt) * of(ys, yAt);
      else
        sums[wAt] += of(xs, xAt) * of(ys, yAt);
    });
    uintptr_t to = which == Which::X ? xs : which == Which::W ? ws : ys;
    for (size_t i = 0; i < sums.size(); ++i)
      store(c.element, to, i, sums[i]);
  };
  auto queued = pushLibraryCall(handle->stream, name, c.flops(), run);
  return queued ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

template <typename T> cudnnStatus_t make(T **to) {
  if (!to)
    return CUDNN_STATUS_BAD_PARAM;
  *to = new T;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t statusOf(bool ok) {
  return ok ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

} // namespace

size_t cudnnGetVersion() {
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard(m.lock);
  return m.failures.dnnVersion ? static_cast<size_t>(m.failures.dnnVersion)
                               : 91000;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  default:
    return "CUDNN_STATUS_INTERNAL_ERROR";
  }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) { return make(handle); }

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  if (!handle)
    return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor) {
  return make(tensor);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  delete tensor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c,
                                         int h, int w) {
  return statusOf(format == CUDNN_TENSOR_NCHW &&
                  set(tensor, type, {n, c, h, w}));
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter) {
  return make(filter);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  delete filter;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k,
                                         int c, int h, int w) {
  return statusOf(format == CUDNN_TENSOR_NCHW &&
                  set(filter, type, {k, c, h, w}));
}

cudnnStatus_t
cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convolution) {
  return make(convolution);
}

cudnnStatus_t
cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  delete convolution;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(
    cudnnConvolutionDescriptor_t convolution, int padH, int padW, int strideH,
    int strideW, int dilationH, int dilationW, cudnnConvolutionMode_t mode,
    cudnnDataType_t compute) {
  if (!convolution || padH < 0 || padW < 0 || strideH < 1 || strideW < 1 ||
      dilationH < 1 || dilationW < 1 || mode != CUDNN_CROSS_CORRELATION)
    return CUDNN_STATUS_BAD_PARAM;
  convolution->padding = {padH, padW};
  convolution->strides = {strideH, strideW};
  convolution->dilation = {dilationH, dilationW};
  convolution->compute = compute;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution,
                              int groups) {
  if (!convolution || groups < 1)
    return CUDNN_STATUS_BAD_PARAM;
  convolution->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution,
                            cudnnMathType_t math) {
  if (!convolution || math < CUDNN_DEFAULT_MATH || math > CUDNN_FMA_MATH)
    return CUDNN_STATUS_BAD_PARAM;
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y,
    int asked, int *found, cudnnConvolutionAlgoPerf_t *results) {
  Convolution c;
  return c.is(x, w, convolution, y)
             ? algorithms(handle, c, asked, found, results)
             : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx,
    int asked, int *found, cudnnConvolutionAlgoPerf_t *results) {
  return cudnnGetConvolutionForwardAlgorithm_v7(handle, dx, w, convolution, dy,
                                                asked, found, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw,
    int asked, int *found, cudnnConvolutionAlgoPerf_t *results) {
  return cudnnGetConvolutionForwardAlgorithm_v7(handle, x, dw, convolution, dy,
                                                asked, found, results);
}

cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t xType,
    const void *x, cudnnFilterDescriptor_t wType, const void *w,
    cudnnConvolutionDescriptor_t convolution, int algorithm, void *workspace,
    size_t workspaceBytes, const void *beta, cudnnTensorDescriptor_t yType,
    void *y) {
  Convolution c;
  return c.is(xType, wType, convolution, yType)
             ? compute(handle, "cudnnConvolutionForward", Which::Y, c, alpha, x,
                       w, algorithm, workspace, workspaceBytes, beta, y)
             : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t wType,
    const void *w, cudnnTensorDescriptor_t dyType, const void *dy,
    cudnnConvolutionDescriptor_t convolution, int algorithm, void *workspace,
    size_t workspaceBytes, const void *beta, cudnnTensorDescriptor_t dxType,
    void *dx) {
  Convolution c;
  return c.is(dxType, wType, convolution, dyType)
             ? compute(handle, "cudnnConvolutionBackwardData", Which::X, c,
                       alpha, dx, w, algorithm, workspace, workspaceBytes, beta,
                       dy)
             : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t xType,
    const void *x, cudnnTensorDescriptor_t dyType, const void *dy,
    cudnnConvolutionDescriptor_t convolution, int algorithm, void *workspace,
    size_t workspaceBytes, const void *beta, cudnnFilterDescriptor_t dwType,
    void *dw) {
  Convolution c;
  return c.is(xType, dwType, convolution, dyType)
             ? compute(handle, "cudnnConvolutionBackwardFilter", Which::W, c,
                       alpha, x, dw, algorithm, workspace, workspaceBytes, beta,
                       dy)
             : CUDNN_STATUS_BAD_PARAM;
}

} // namespace tandem::cuda::library
