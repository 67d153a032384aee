//===- Trained.h - compiled models that ranks of threads train ------------===//
//
// Inputs are drawn, the same on all ranks, and cut; outputs and what was
// learned are whole again.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SHARD_TRAINED_H
#define TANDEM_TESTS_SHARD_TRAINED_H

#include "compiler/Compile.h"
#include "runtime/comm/Communicator.h"
#include "runtime/model/Model.h"
#include "tests/shard/Models.h"

#include <functional>
#include <map>

namespace tandem::test {

using Traced = void (*)(Trace &, const Sizes &);
using Tensors = std::map<std::string, runtime::Tensor>;

/// The bytes of an artifact, for one thread whatever the options say.
std::string compiled(Traced model, const Sizes &sizes, CompileOptions options);

/// With one thread.
Result<runtime::Model> loaded(const std::string &bytes,
                              runtime::Device device = {});

/// Inputs of one step, whole.
Tensors inputsOf(const artifact::Manifest &manifest, uint64_t seed);

/// A rank's piece of an input.
using Cut = Result<runtime::Tensor>(const runtime::Model &model,
                                    const artifact::Value &input,
                                    const runtime::Tensor &whole);
/// With zeros behind the last row.
Cut cut;

/// One step; returns its outputs, whole.
Result<Tensors> stepOf(runtime::Model &model, uint64_t seed, Cut *cutter = cut);

/// Runs three steps; returns the outputs of each, and with the last one what
/// was learned ("new " and the name).
std::vector<Tensors> trained(runtime::Model &model, Cut *cutter = cut);

/// Compares numbers of f32, and shapes of all.
void expectNear(const Tensors &got, const Tensors &wanted, double tolerance);
void expectNear(const std::vector<Tensors> &got,
                const std::vector<Tensors> &wanted, double tolerance);

/// Runs `body` on ranks of threads, which have a model each, and on devices
/// one of these.
void onRanks(
    int ranks, const std::string &bytes, runtime::DeviceKind kind,
    const std::function<void(runtime::Model &, comm::Communicator &)> &body,
    std::chrono::milliseconds limit = std::chrono::seconds(60));

} // namespace tandem::test

#endif
