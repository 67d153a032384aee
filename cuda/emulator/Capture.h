//===- Capture.h - recording what streams are given -----------------------===//
#ifndef TANDEM_CUDA_EMULATOR_CAPTURE_H
#define TANDEM_CUDA_EMULATOR_CAPTURE_H

#include "cuda/emulator/Streams.h"

namespace tandem::emulator {

class Machine;

driver::CUresult beginCapture(Machine &machine, Stream &stream,
                              driver::CUstreamCaptureMode mode);
/// Ends it whatever happened to it; `graph` is set if the result is success.
driver::CUresult endCapture(Machine &machine, Stream &stream,
                            std::unique_ptr<Graph> &graph);
/// Makes `stream` wait for `event`, one of which is captured.
driver::CUresult captureWait(Machine &machine, Stream &stream,
                             const Event &event);

} // namespace tandem::emulator

#endif
