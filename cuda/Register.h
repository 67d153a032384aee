//===- Register.h - makes GPUs known to the runtime -----------------------===//
//
// A program that wants `cuda` and `cuda-emu` devices calls `registerDevices`
// once, before it asks for one. Nothing is opened before a device is asked for.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_REGISTER_H
#define TANDEM_CUDA_REGISTER_H

#include <string>

namespace tandem::cuda {

struct LibraryFiles;

/// Registers the devices "cuda", which need the driver's library
/// (libcuda.so.1), and "cuda-emu", which need libtandem-cuda-emulator.so: where
/// the environment's TANDEM_CUDA_EMULATOR says, else beside this library or
/// program or in ../lib from there, else where the dynamic linker finds it.
void registerDevices();

/// The driver's library, or that of the emulator, as they are found above; and
/// the files of the other libraries.
std::string driverOf(bool isEmulated);
LibraryFiles filesOf(bool isEmulated);

} // namespace tandem::cuda

#endif
