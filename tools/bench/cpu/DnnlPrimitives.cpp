//===- DnnlPrimitives.cpp - what oneDNN computes --------------------------===//
#include "tools/bench/cpu/DnnlFunctions.h"

using namespace tandem;
using namespace tandem::bench;

enum { kDirect = 1, kWinograd = 2 };
using Sizes = int64_t[12];

DnnlPrimitiveDesc Dnnl::owned(int status, void *desc) const {
  if (status || !desc)
    return nullptr;
  return {desc, f->destroyPd};
}

/// Of version 2's description of an operation.
DnnlPrimitiveDesc Dnnl::made(void *desc, const void *hint,
                             void *attributes) const {
  void *pd = nullptr;
  int status = f->create2(&pd, desc, attributes, engine, hint);
  return owned(status, pd);
}

DnnlPrimitiveDesc Dnnl::matmul(const DnnlDesc &lhs, const DnnlDesc &rhs,
                               const DnnlDesc &bias, const DnnlDesc &y,
                               bool withGelu) const {
  void *attributes = nullptr, *postOps = nullptr, *pd = nullptr;
  if (withGelu) {
    f->attributesCreate(&attributes);
    f->postOpsCreate(&postOps);
    if (f->isThree)
      f->appendEltwise3(postOps, 43, 0, 0);
    else
      f->appendEltwise2(postOps, 1, 207, 0, 0);
    f->setPostOps(attributes, postOps);
  }
  if (f->isThree) {
    int status = f->matmul3(&pd, engine, lhs.get(), rhs.get(), bias.get(),
                            y.get(), attributes);
    return owned(status, pd);
  }
  auto op = blob();
  f->matmul2(op.get(), lhs.get(), rhs.get(), bias.get(), y.get());
  return made(op.get(), nullptr, attributes);
}

DnnlPrimitiveDesc Dnnl::convolution(DnnlPass pass, bool isWinograd,
                                    const DnnlDesc &x, const DnnlDesc &w,
                                    const DnnlDesc &y, const Window &s) const {
  int kind = pass == DnnlPass::Forward ? kInference : kTraining;
  int algorithm = isWinograd ? kWinograd : kDirect;
  Sizes dense{};
  if (f->isThree) {
    void *pd = nullptr;
    int status =
        f->conv3(&pd, engine, kind, algorithm, x.get(), w.get(), nullptr,
                 y.get(), s.strides, dense, s.before, s.after, nullptr);
    auto forward = owned(status, pd);
    if (!forward || pass == DnnlPass::Forward)
      return forward;
    if (pass == DnnlPass::BackwardData)
      status = f->convData3(&pd, engine, algorithm, x.get(), w.get(), y.get(),
                            s.strides, dense, s.before, s.after, forward.get(),
                            nullptr);
    else
      status = f->convWeights3(&pd, engine, algorithm, x.get(), w.get(),
                               nullptr, y.get(), s.strides, dense, s.before,
                               s.after, forward.get(), nullptr);
    return owned(status, pd);
  }
  auto op = blob();
  f->conv2(op.get(), kind, algorithm, x.get(), w.get(), nullptr, y.get(),
           s.strides, s.before, s.after);
  auto forward = made(op.get(), nullptr, nullptr);
  if (!forward || pass == DnnlPass::Forward)
    return forward;
  op = blob();
  if (pass == DnnlPass::BackwardData)
    f->convData2(op.get(), algorithm, x.get(), w.get(), y.get(), s.strides,
                 s.before, s.after);
  else
    f->convWeights2(op.get(), algorithm, x.get(), w.get(), nullptr, y.get(),
                    s.strides, s.before, s.after);
  return made(op.get(), forward.get(), nullptr);
}

DnnlPrimitiveDesc Dnnl::softmax(DnnlPass pass, bool isLog,
                                const DnnlDesc &x) const {
  constexpr int kAxis = 1;
  int kind = pass == DnnlPass::Forward ? kInference : kTraining;
  if (f->isThree) {
    void *pd = nullptr;
    int algorithm = isLog ? 0x30001 : 0x30000;
    int status = f->softmax3(&pd, engine, kind, algorithm, x.get(), x.get(),
                             kAxis, nullptr);
    auto forward = owned(status, pd);
    if (!forward || pass == DnnlPass::Forward)
      return forward;
    status = f->softmaxBack3(&pd, engine, algorithm, x.get(), x.get(), x.get(),
                             kAxis, forward.get(), nullptr);
    return owned(status, pd);
  }
  auto op = blob();
  (isLog ? f->logSoftmax2 : f->softmax2)(op.get(), kind, x.get(), kAxis);
  auto forward = made(op.get(), nullptr, nullptr);
  if (!forward || pass == DnnlPass::Forward)
    return forward;
  op = blob();
  (isLog ? f->logSoftmaxBack2 : f->softmaxBack2)(op.get(), x.get(), x.get(),
                                                 kAxis);
  return made(op.get(), forward.get(), nullptr);
}

DnnlPrimitiveDesc Dnnl::gelu(DnnlPass pass, bool isTanh,
                             const DnnlDesc &x) const {
  int kind = pass == DnnlPass::Forward ? kInference : kTraining;
  if (f->isThree) {
    void *pd = nullptr;
    int algorithm = isTanh ? 43 : 49;
    int status = f->eltwise3(&pd, engine, kind, algorithm, x.get(), x.get(), 0,
                             0, nullptr);
    auto forward = owned(status, pd);
    if (!forward || pass == DnnlPass::Forward)
      return forward;
    status = f->eltwiseBack3(&pd, engine, algorithm, x.get(), x.get(), x.get(),
                             0, 0, forward.get(), nullptr);
    return owned(status, pd);
  }
  int algorithm = isTanh ? 207 : 48;
  auto op = blob();
  f->eltwise2(op.get(), kind, algorithm, x.get(), 0, 0);
  auto forward = made(op.get(), nullptr, nullptr);
  if (!forward || pass == DnnlPass::Forward)
    return forward;
  op = blob();
  f->eltwiseBack2(op.get(), algorithm, x.get(), x.get(), 0, 0);
  return made(op.get(), forward.get(), nullptr);
}

DnnlPrimitiveDesc Dnnl::layerNorm(DnnlPass pass, const DnnlDesc &x,
                                  const DnnlDesc &rows, float epsilon) const {
  int kind = pass == DnnlPass::Forward ? kInference : kTraining;
  unsigned scaleAndShift = f->isThree ? 2 | 4 : 8 | 16;
  if (f->isThree) {
    void *pd = nullptr;
    int status = f->norm3(&pd, engine, kind, x.get(), x.get(), rows.get(),
                          epsilon, scaleAndShift, nullptr);
    auto forward = owned(status, pd);
    if (!forward || pass == DnnlPass::Forward)
      return forward;
    status = f->normBack3(&pd, engine, kBackward, x.get(), x.get(), x.get(),
                          rows.get(), epsilon, scaleAndShift, forward.get(),
                          nullptr);
    return owned(status, pd);
  }
  auto op = blob();
  f->norm2(op.get(), kind, x.get(), rows.get(), epsilon, scaleAndShift);
  auto forward = made(op.get(), nullptr, nullptr);
  if (!forward || pass == DnnlPass::Forward)
    return forward;
  op = blob();
  f->normBack2(op.get(), kBackward, x.get(), x.get(), rows.get(), epsilon,
               scaleAndShift);
  return made(op.get(), forward.get(), nullptr);
}
