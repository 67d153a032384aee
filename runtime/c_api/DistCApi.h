//===- DistCApi.h - what the files of the distributed C API share ---------===//
#ifndef TANDEM_RUNTIME_C_API_DISTCAPI_H
#define TANDEM_RUNTIME_C_API_DISTCAPI_H

#include "runtime/c_api/GraphCApi.h"
#include "runtime/dist.h"
#include "runtime/graph/distributed/Worker.h"

namespace tandem::capi {

/// The transport that C functions are; it is closed if this fails, unless it is
/// no struct of a known size.
Result<std::unique_ptr<graph::distributed::Transport>>
transportOf(const tdm_dist_transport *transport);

} // namespace tandem::capi

#endif
