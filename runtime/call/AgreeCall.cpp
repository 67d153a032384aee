//===- AgreeCall.cpp - cotangents that some ranks define ------------------===//
//
// Which launches of a backward run follows from which cotangents are defined.
// If that were not the same on all ranks, a collective would wait for ranks
// that never come to it.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"

namespace tandem::runtime {

Status agree(const Invocation &call, MatchedCall &matched) {
  const comm::MeshCommunicators *ranks = call.core.communicators.get();
  if (!call.takes || !call.program.hasCollectives || !ranks ||
      ranks->world().ranks() == 1)
    return Status::success();
  std::vector<char> &isDefined = matched.isDefined, &isZeros = matched.isZeros;
  for (size_t a = 0; a < isDefined.size(); ++a)
    isZeros[a] = !isDefined[a];
  Status status = ranks->world().allReduce(
      DType::U8, comm::Reduce::Max, isDefined.data(), isDefined.data(),
      static_cast<int64_t>(isDefined.size()));
  if (!status)
    return status;
  matched.allDefined = true;
  for (size_t a = 0; a < isDefined.size(); ++a) {
    isZeros[a] = isZeros[a] && isDefined[a];
    matched.allDefined &= isDefined[a] != 0;
    matched.isIdle &= !isZeros[a];
  }
  return status;
}

} // namespace tandem::runtime
