//===- TestModel.h - artifacts made by hand -------------------------------===//
//
// Manifests over the kernels of TestKernels.c, and the tensors that go into
// them: what the executor's tests and the C API's test run.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_TESTMODEL_H
#define TANDEM_TESTS_RUNTIME_TESTMODEL_H

#include "runtime/artifact/ArtifactWriter.h"
#include "runtime/model/Model.h"

#include <string>
#include <vector>

namespace tandem::test {

/// Returns the code object that CMake built from TestKernels.c.
std::string kernelObject();

/// Linear regression with programs evaluate, forward, backward, update and
/// step. Inputs x [8, 3] and y [8]; params w [3] and b []; states rate (0.1)
/// and steps (0, counted by forward and step); outputs loss [] and pred [8].
artifact::Manifest regression();

/// The same with loss scaling: programs forward, backward and update. State
/// scale (1024) times the loss is the output scaled []; its gradients, which go
/// through f16, are those of the scaled loss. The update takes the scale out of
/// them; where one is not finite it changes no param, and halves the scale.
artifact::Manifest scaledRegression();

inline artifact::Alias aliasOf(const char *of,
                               std::vector<artifact::View> views = {}) {
  artifact::Alias alias;
  alias.of = of;
  alias.views = std::move(views);
  return alias;
}

inline artifact::Alias aliasOfOutput(const char *output,
                                     std::vector<artifact::View> views = {}) {
  artifact::Alias alias;
  alias.output = output;
  alias.views = std::move(views);
  return alias;
}

/// The regression with everything that a manifest says of aliases, handles and
/// conditions somewhere. Programs: 1 forward, 2 backward; arguments of forward:
/// 0 x, 1 y, 5 p, 6 q, 7 f.
artifact::Manifest mutatingRegression();

/// One program "evaluate": x [count] -> big [count] through scratch memory, and
/// scaled [count] = x times a constant of four numbers at offset 64.
artifact::Manifest wide(int64_t count, int64_t grain);

/// Returns the manifest for the target "cuda": blocks of one thread, a grid of
/// as many as there is work.
artifact::Manifest forDevice(artifact::Manifest manifest);

/// The regression whose y is of integers from -2 to 9, or 255. Its kernels take
/// them for floats, so no number of it means anything.
artifact::Manifest labelledRegression(artifact::DType type);

/// The regression for the target "cuda", which keeps what its backward needs in
/// the host's memory: `r` of a context, and the same in "step".
artifact::Manifest offloadedRegression();

/// Returns the manifest as an artifact with the test kernels and, in the
/// constants section, the number 1 at offset 0 and 1, 2, 3, 4 at 64.
artifact::ArtifactWriter writerFor(const artifact::Manifest &manifest);
/// Returns one artifact for "cpu" and "cuda". Its PTX is no program.
artifact::ArtifactWriter writerForBoth(const artifact::Manifest &manifest);
artifact::ArtifactReader readerFor(const artifact::Manifest &manifest);
/// Loads the manifest on `testDevice()`.
runtime::Model modelFor(const artifact::Manifest &manifest,
                        const runtime::Options &options = {2, 0});

/// Where models live: the host, unless a test program says otherwise.
runtime::Device &testDevice();
/// Where the tensors of `tensorOf` and `filled` are: the host, unless ...
runtime::Device &tensorDevice();

runtime::Tensor tensorOf(const std::vector<float> &values,
                         const std::vector<int64_t> &shape);
std::vector<float> valuesOf(const runtime::Tensor &tensor);
/// Writes element number `index` of a dense tensor, wherever it is.
void setAt(const runtime::Tensor &tensor, int64_t index, float value);

/// The regression's data: x and y = 1*x0 - 2*x1 + 3*x2 + 0.5.
runtime::Tensor sampleX();
runtime::Tensor sampleY();

} // namespace tandem::test

#endif
