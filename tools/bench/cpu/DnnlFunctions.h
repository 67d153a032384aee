//===- DnnlFunctions.h - the functions of oneDNN
//---------------------------===//
//
// Declared as in dnnl.h, with opaque pointers: version 2 passes its descriptors
// by pointer, too, and what it writes into them fits kDescBytes. Numbers are
// those of dnnl_types.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_DNNLFUNCTIONS_H
#define TANDEM_TOOLS_BENCH_CPU_DNNLFUNCTIONS_H

#include "tools/bench/cpu/Dnnl.h"

#include <cstdlib>

namespace tandem::bench {

/// More than any descriptor of version 2 (of a memory: 696, of a convolution:
/// 5,976).
inline constexpr size_t kDescBytes = 16384;

/// Kinds of propagation.
enum { kInference = 96, kTraining = 64, kBackward = 128 };

/// Memory for a descriptor of version 2.
inline std::shared_ptr<void> blob() {
  return {std::calloc(1, kDescBytes), std::free};
}

struct DnnlExecutionArgument {
  int argument;
  void *memory;
};

/// Those without a note are alike in both versions.
struct Dnnl::Functions {
  using P = void *;
  using C = const void *;

  int (*engineCreate)(P *, int, size_t);
  int (*streamCreate)(P *, P, unsigned);
  int (*streamWait)(P);
  int (*memoryCreate)(P *, C, P, void *);
  int (*memoryDestroy)(P);
  size_t (*sizeOf)(C);
  int (*equal)(C, C);
  int (*destroyPd)(P);
  C (*query)(C, int, int);
  int (*primitiveCreate)(P *, C);
  int (*primitiveDestroy)(P);
  int (*execute)(C, P, int, const DnnlExecutionArgument *);
  int (*reorder)(P *, C, P, C, P, C);
  int (*attributesCreate)(P *);
  int (*setPostOps)(P, C);
  int (*postOpsCreate)(P *);
  // Version 2.
  int (*strided2)(P, int, const int64_t *, int, const int64_t *);
  int (*tagged2)(P, int, const int64_t *, int, int);
  int (*create2)(P *, C, C, P, C);
  int (*matmul2)(P, C, C, C, C);
  int (*conv2)(P, int, int, C, C, C, C, C, C, C);
  int (*convData2)(P, int, C, C, C, C, C, C);
  int (*convWeights2)(P, int, C, C, C, C, C, C, C);
  int (*softmax2)(P, int, C, int), (*logSoftmax2)(P, int, C, int);
  int (*softmaxBack2)(P, C, C, int), (*logSoftmaxBack2)(P, C, C, int);
  int (*eltwise2)(P, int, int, C, float, float);
  int (*eltwiseBack2)(P, int, C, C, float, float);
  int (*norm2)(P, int, C, C, float, unsigned);
  int (*normBack2)(P, int, C, C, C, float, unsigned);
  int (*appendEltwise2)(P, float, int, float, float);
  // Version 3.
  int (*strided3)(P *, int, const int64_t *, int, const int64_t *);
  int (*tagged3)(P *, int, const int64_t *, int, int);
  int (*destroyDesc3)(P);
  int (*matmul3)(P *, P, C, C, C, C, C);
  int (*conv3)(P *, P, int, int, C, C, C, C, C, C, C, C, C);
  int (*convData3)(P *, P, int, C, C, C, C, C, C, C, C, C);
  int (*convWeights3)(P *, P, int, C, C, C, C, C, C, C, C, C, C);
  int (*softmax3)(P *, P, int, int, C, C, int, C);
  int (*softmaxBack3)(P *, P, int, C, C, C, int, C, C);
  int (*eltwise3)(P *, P, int, int, C, C, float, float, C);
  int (*eltwiseBack3)(P *, P, int, C, C, C, float, float, C, C);
  int (*norm3)(P *, P, int, C, C, C, float, unsigned, C);
  int (*normBack3)(P *, P, int, C, C, C, C, float, unsigned, C, C);
  int (*appendEltwise3)(P, int, float, float);
  bool isThree = false;
};

} // namespace tandem::bench

#endif
