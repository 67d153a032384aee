//===- CommCApi.h - the C API's communicator ------------------------------===//
#ifndef TANDEM_RUNTIME_C_API_COMMCAPI_H
#define TANDEM_RUNTIME_C_API_COMMCAPI_H

#include "runtime/comm.h"
#include "runtime/comm/Communicator.h"

struct tdm_comm {
  /// Shared with the models that have it.
  std::shared_ptr<tandem::comm::Communicator> world;
};

#endif
