//===- WriteArtifact.cpp - writes the regression to a file ----------------===//
//
// runtime-write-artifact FILE: what the C API's test, which sees nothing but
// tandem.h, loads.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/TestModel.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  tandem::Status status =
      tandem::test::writerFor(tandem::test::regression()).write(argv[1]);
  if (!status)
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.exitCode();
}
