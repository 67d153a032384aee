//===- Passes.cpp - the passes' registration ------------------------------===//
#include "passes/Passes.h"
