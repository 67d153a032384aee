//===- Dnnl.cpp - opening oneDNN, and its layouts -------------------------===//
#include "tools/bench/cpu/Dnnl.h"
#include "tools/bench/cpu/DnnlFunctions.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::bench;

namespace {

enum { kCpu = 1, kF32 = 3, kBf16 = 2, kAny = 1, kInOrder = 1 };

using Sizes = int64_t[12];

int typeOf(DType dtype) { return dtype == DType::BF16 ? kBf16 : kF32; }

struct Version {
  int major, minor, patch;
};

} // namespace

Dnnl::Dnnl(const std::string &path)
    : library(path.empty()
                  ? std::vector<std::string>{"libdnnl.so.3", "libdnnl.so.2"}
                  : std::vector<std::string>{path}),
      f(std::make_shared<Functions>()) {
  const Version *(*version)();
  if (!library.find("dnnl_version", version)) {
    problem = "no oneDNN: " + library.error();
    return;
  }
  f->isThree = version()->major >= 3;
  name = "onednn-" + std::to_string(version()->major) + "." +
         std::to_string(version()->minor);
  bool isComplete =
      library.find("dnnl_engine_create", f->engineCreate) &&
      library.find("dnnl_stream_create", f->streamCreate) &&
      library.find("dnnl_stream_wait", f->streamWait) &&
      library.find("dnnl_memory_create", f->memoryCreate) &&
      library.find("dnnl_memory_destroy", f->memoryDestroy) &&
      library.find("dnnl_memory_desc_get_size", f->sizeOf) &&
      library.find("dnnl_memory_desc_equal", f->equal) &&
      library.find("dnnl_primitive_desc_destroy", f->destroyPd) &&
      library.find("dnnl_primitive_desc_query_md", f->query) &&
      library.find("dnnl_primitive_create", f->primitiveCreate) &&
      library.find("dnnl_primitive_destroy", f->primitiveDestroy) &&
      library.find("dnnl_primitive_execute", f->execute) &&
      library.find("dnnl_reorder_primitive_desc_create", f->reorder) &&
      library.find("dnnl_primitive_attr_create", f->attributesCreate) &&
      library.find("dnnl_primitive_attr_set_post_ops", f->setPostOps) &&
      library.find("dnnl_post_ops_create", f->postOpsCreate);
  if (f->isThree)
    isComplete =
        isComplete &&
        library.find("dnnl_memory_desc_create_with_strides", f->strided3) &&
        library.find("dnnl_memory_desc_create_with_tag", f->tagged3) &&
        library.find("dnnl_memory_desc_destroy", f->destroyDesc3) &&
        library.find("dnnl_matmul_primitive_desc_create", f->matmul3) &&
        library.find("dnnl_convolution_forward_primitive_desc_create",
                     f->conv3) &&
        library.find("dnnl_convolution_backward_data_primitive_desc_create",
                     f->convData3) &&
        library.find("dnnl_convolution_backward_weights_primitive_desc_create",
                     f->convWeights3) &&
        library.find("dnnl_softmax_forward_primitive_desc_create",
                     f->softmax3) &&
        library.find("dnnl_softmax_backward_primitive_desc_create",
                     f->softmaxBack3) &&
        library.find("dnnl_eltwise_forward_primitive_desc_create",
                     f->eltwise3) &&
        library.find("dnnl_eltwise_backward_primitive_desc_create",
                     f->eltwiseBack3) &&
        library.find("dnnl_layer_normalization_forward_primitive_desc_create",
                     f->norm3) &&
        library.find("dnnl_layer_normalization_backward_primitive_desc_create",
                     f->normBack3) &&
        library.find("dnnl_post_ops_append_eltwise", f->appendEltwise3);
  else
    isComplete =
        isComplete &&
        library.find("dnnl_memory_desc_init_by_strides", f->strided2) &&
        library.find("dnnl_memory_desc_init_by_tag", f->tagged2) &&
        library.find("dnnl_primitive_desc_create", f->create2) &&
        library.find("dnnl_matmul_desc_init", f->matmul2) &&
        library.find("dnnl_convolution_forward_desc_init", f->conv2) &&
        library.find("dnnl_convolution_backward_data_desc_init",
                     f->convData2) &&
        library.find("dnnl_convolution_backward_weights_desc_init",
                     f->convWeights2) &&
        library.find("dnnl_softmax_forward_desc_init", f->softmax2) &&
        library.find("dnnl_softmax_backward_desc_init", f->softmaxBack2) &&
        library.find("dnnl_logsoftmax_forward_desc_init", f->logSoftmax2) &&
        library.find("dnnl_logsoftmax_backward_desc_init",
                     f->logSoftmaxBack2) &&
        library.find("dnnl_eltwise_forward_desc_init", f->eltwise2) &&
        library.find("dnnl_eltwise_backward_desc_init", f->eltwiseBack2) &&
        library.find("dnnl_layer_normalization_forward_desc_init", f->norm2) &&
        library.find("dnnl_layer_normalization_backward_desc_init",
                     f->normBack2) &&
        library.find("dnnl_post_ops_append_eltwise", f->appendEltwise2);
  if (!isComplete || f->engineCreate(&engine, kCpu, 0) ||
      f->streamCreate(&stream, engine, kInOrder))
    problem = name + " is not as expected";
}

void Dnnl::setThreads(int threads) {
  static const Library openMp({"libgomp.so.1"});
  void (*set)(int);
  if (openMp.find("omp_set_num_threads", set))
    set(threads);
}

DnnlDesc Dnnl::dense(const std::vector<int64_t> &sizes, DType dtype,
                     const std::vector<int64_t> &strides) const {
  Sizes extents{}, steps{};
  int rank = static_cast<int>(sizes.size());
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    extents[i] = sizes[i];
    steps[i] = strides.empty() ? step : strides[i];
    step *= sizes[i];
  }
  if (f->isThree) {
    void *desc = nullptr;
    f->strided3(&desc, rank, extents, typeOf(dtype), steps);
    return {desc, f->destroyDesc3};
  }
  auto desc = blob();
  f->strided2(desc.get(), rank, extents, typeOf(dtype), steps);
  return desc;
}

DnnlDesc Dnnl::any(const std::vector<int64_t> &sizes, DType dtype) const {
  Sizes extents{};
  std::copy(sizes.begin(), sizes.end(), extents);
  int rank = static_cast<int>(sizes.size());
  if (f->isThree) {
    void *desc = nullptr;
    f->tagged3(&desc, rank, extents, typeOf(dtype), kAny);
    return {desc, f->destroyDesc3};
  }
  auto desc = blob();
  f->tagged2(desc.get(), rank, extents, typeOf(dtype), kAny);
  return desc;
}

static std::vector<std::string> places = {""};

void bench::setDnnl(const std::vector<std::string> &paths) { places = paths; }

const std::vector<std::unique_ptr<Dnnl>> &bench::dnnlLibraries() {
  static const auto libraries = [] {
    std::vector<std::unique_ptr<Dnnl>> all;
    for (const std::string &path : places)
      all.push_back(std::make_unique<Dnnl>(path));
    return all;
  }();
  return libraries;
}
