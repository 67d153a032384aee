//===- RegisterOnLoad.cpp - devices of a shared library -------------------===//
//
// Part of libtandem.so, whose C API has no call for it: registers the devices
// when the library is loaded. Nothing is opened before one is asked for.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"

[[maybe_unused]] static const bool isRegistered =
    (tandem::cuda::registerDevices(), true);
