//===- DnnCall.cpp - a convolution as a call of cuDNN ---------------------===//
#include "cuda/Libraries.h"

#include <algorithm>
#include <array>

namespace tandem::cuda {

using namespace library;
using artifact::DType;
using artifact::LibraryCall;

namespace {

cudnnDataType_t typeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return CUDNN_DATA_DOUBLE;
  case DType::F16:
    return CUDNN_DATA_HALF;
  case DType::BF16:
    return CUDNN_DATA_BFLOAT16;
  default:
    return CUDNN_DATA_FLOAT;
  }
}

class DnnCall final : public PreparedCall {
public:
  DnnCall(Libraries &libraries, const LibraryCall &call, size_t workspaceBytes)
      : libraries(libraries), call(call), workspaceBytes(workspaceBytes) {}

  ~DnnCall() override {
    const DnnFunctions &dnn = libraries.dnn();
    if (x)
      dnn.tensorDestroy(x);
    if (y)
      dnn.tensorDestroy(y);
    if (w)
      dnn.filterDestroy(w);
    if (convolution)
      dnn.convolutionDestroy(convolution);
  }

  Status prepare();
  Status queue(driver::CUstream stream, std::span<void *const> buffers,
               void *workspace) override;

  const char *name() const override {
    return call.op == "conv2d"              ? "cudnnConvolutionForward"
           : call.op == "conv2d_input_grad" ? "cudnnConvolutionBackwardData"
                                            : "cudnnConvolutionBackwardFilter";
  }

private:
  Status describe();
  Status choose();

  Libraries &libraries;
  LibraryCall call;
  size_t workspaceBytes, usedBytes = 0;
  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  int algorithm = 0;
};

Status DnnCall::queue(driver::CUstream stream, std::span<void *const> buffers,
                      void *workspace) {
  const DnnFunctions &dnn = libraries.dnn();
  auto at = [&](size_t operand) { return buffers[call.operands[operand]]; };
  const double one = 1, zero = 0;
  const float oneF = 1, zeroF = 0;
  bool isDouble = call.dtype == DType::F64;
  const void *alpha = isDouble ? static_cast<const void *>(&one) : &oneF;
  const void *beta = isDouble ? static_cast<const void *>(&zero) : &zeroF;
  void *memory = usedBytes ? alignedWorkspace(workspace) : nullptr;
  std::lock_guard<std::mutex> lock(libraries.dnnMutex);
  cudnnHandle_t handle = libraries.dnnHandle;
  if (Status status =
          libraries.check(dnn.setStream(handle, stream), "cudnnSetStream");
      !status)
    return status;
  if (call.op == "conv2d")
    return libraries.check(dnn.forward(handle, alpha, x, at(0), w, at(1),
                                       convolution, algorithm, memory,
                                       usedBytes, beta, y, at(2)),
                           name());
  if (call.op == "conv2d_input_grad")
    return libraries.check(dnn.inputGrad(handle, alpha, w, at(1), y, at(2),
                                         convolution, algorithm, memory,
                                         usedBytes, beta, x, at(0)),
                           name());
  return libraries.check(dnn.filterGrad(handle, alpha, x, at(0), y, at(2),
                                        convolution, algorithm, memory,
                                        usedBytes, beta, w, at(1)),
                         name());
}

Status DnnCall::describe() {
  const DnnFunctions &dnn = libraries.dnn();
  using namespace artifact;
  auto size = [&](size_t which) { return static_cast<int>(call.sizes[which]); };
  auto pair = [](const std::vector<int64_t> &list, size_t which) {
    return static_cast<int>(list[which]);
  };
  cudnnDataType_t type = typeOf(call.dtype);
  bool isHalf = call.dtype == DType::F16 || call.dtype == DType::BF16;
  cudnnMathType_t math = isHalf      ? CUDNN_TENSOR_OP_MATH
                         : call.tf32 ? CUDNN_DEFAULT_MATH
                                     : CUDNN_FMA_MATH;
  Status status;
  auto step = [&](const char *name, auto &&make) {
    if (status.ok())
      status = libraries.check(make(), name);
  };
  step("cudnnCreateTensorDescriptor", [&] { return dnn.tensorCreate(&x); });
  step("cudnnCreateTensorDescriptor", [&] { return dnn.tensorCreate(&y); });
  step("cudnnCreateFilterDescriptor", [&] { return dnn.filterCreate(&w); });
  step("cudnnCreateConvolutionDescriptor",
       [&] { return dnn.convolutionCreate(&convolution); });
  step("cudnnSetTensor4dDescriptor", [&] {
    return dnn.tensorSet(x, CUDNN_TENSOR_NCHW, type, size(N), size(C), size(H),
                         size(W));
  });
  step("cudnnSetTensor4dDescriptor", [&] {
    return dnn.tensorSet(y, CUDNN_TENSOR_NCHW, type, size(N), size(O), size(OH),
                         size(OW));
  });
  step("cudnnSetFilter4dDescriptor", [&] {
    return dnn.filterSet(w, type, CUDNN_TENSOR_NCHW, size(O),
                         size(C) / size(Groups), size(KH), size(KW));
  });
  step("cudnnSetConvolution2dDescriptor", [&] {
    return dnn.convolutionSet(convolution, pair(call.padding, 0),
                              pair(call.padding, 1), pair(call.strides, 0),
                              pair(call.strides, 1), pair(call.dilation, 0),
                              pair(call.dilation, 1), CUDNN_CROSS_CORRELATION,
                              isHalf ? CUDNN_DATA_FLOAT : type);
  });
  step("cudnnSetConvolutionGroupCount",
       [&] { return dnn.convolutionSetGroups(convolution, size(Groups)); });
  step("cudnnSetConvolutionMathType",
       [&] { return dnn.convolutionSetMath(convolution, math); });
  return status;
}

Status DnnCall::choose() {
  const DnnFunctions &dnn = libraries.dnn();
  std::array<cudnnConvolutionAlgoPerf_t, 8> results = {};
  auto asked = static_cast<int>(results.size());
  int found = 0;
  cudnnHandle_t handle = libraries.dnnHandle;
  cudnnStatus_t result =
      call.op == "conv2d" ? dnn.forwardAlgorithms(handle, x, w, convolution, y,
                                                  asked, &found, results.data())
      : call.op == "conv2d_input_grad"
          ? dnn.inputGradAlgorithms(handle, w, y, convolution, x, asked, &found,
                                    results.data())
          : dnn.filterGradAlgorithms(handle, x, y, convolution, w, asked,
                                     &found, results.data());
  // The library's first is the one that it expects to be the fastest. What
  // rounds more than was asked for, or adds in any order, is none for us.
  for (int i = 0; !result && i < std::min(found, asked); ++i) {
    const cudnnConvolutionAlgoPerf_t &one = results[i];
    bool isExact =
        call.dtype != DType::F32 || call.tf32 || one.mathType == CUDNN_FMA_MATH;
    if (one.status != CUDNN_STATUS_SUCCESS || !isExact ||
        one.determinism != CUDNN_DETERMINISTIC || one.memory > workspaceBytes)
      continue;
    Status set =
        libraries.check(dnn.convolutionSetMath(convolution, one.mathType),
                        "cudnnSetConvolutionMathType");
    if (!set)
      return set;
    algorithm = one.algo;
    usedBytes = one.memory;
    return Status::success();
  }
  return Status::unsupported("cuDNN has no algorithm for the convolution");
}

Status DnnCall::prepare() {
  Status status = describe();
  return status.ok() ? choose() : status;
}

} // namespace

Result<std::unique_ptr<PreparedCall>> prepareDnn(Libraries &libraries,
                                                 const LibraryCall &call,
                                                 size_t workspaceBytes) {
  auto made = std::make_unique<DnnCall>(libraries, call, workspaceBytes);
  if (Status status = made->prepare(); !status)
    return status;
  return Result<std::unique_ptr<PreparedCall>>(std::move(made));
}

} // namespace tandem::cuda
