//===- WriteArtifact.cpp - writes the regression to a file ----------------===//
//
// runtime-write-artifact FILE [BOTH]: what the C API's test, which sees nothing
// but tandem.h, loads; and the same for two targets.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/TestModel.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3)
    return 2;
  auto manifest = tandem::test::regression();
  tandem::Status status = tandem::test::writerFor(manifest).write(argv[1]);
  if (status && argc == 3)
    status = tandem::test::writerForBoth(manifest).write(argv[2]);
  if (!status)
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.exitCode();
}
