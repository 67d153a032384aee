//===- ManifestRules.h - the rules of a manifest, by concern --------------===//
//
// The parts of `validate`. Each adds what is wrong to `problems`. The others
// rely on `checkForm` having found nothing, and on no other. Internal to
// runtime/artifact.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_MANIFESTRULES_H
#define TANDEM_RUNTIME_ARTIFACT_MANIFESTRULES_H

#include "runtime/artifact/Manifest.h"
#include "runtime/artifact/ManifestProblems.h"

namespace tandem::artifact {

/// Returns "f32 [2, 3]".
std::string typeText(DType dtype, const std::vector<int64_t> &shape);

/// True for a program that takes cotangents.
bool isBackward(const Program &program);

/// That every type is one that a tensor can have, and what Manifest.def says of
/// each field: ranges, lengths of lists, texts without control characters.
void checkForm(const Manifest &manifest, ManifestProblems &problems);

/// What may stand on a slot of which role; views and their types; outputs that
/// are no results; handles and storages that change. `at` is the pointer of the
/// program.
void checkAliases(const Manifest &manifest, const Program &program,
                  const std::string &at, ManifestProblems &problems);

/// A launch reads from the arena what is still there: two values that live at
/// once do not overlap.
void checkArena(const Program &program, const std::string &at,
                ManifestProblems &problems);

/// What runs only where cotangents are defined: names, and that a result that
/// is there was written.
void checkConditions(const Program &program, const std::string &at,
                     ManifestProblems &problems);

/// The tensor maps of a kernel, at `at`: what a driver accepts.
void checkTensorMaps(const Kernel &kernel, bool isCuda, const std::string &at,
                     ManifestProblems &problems);
/// That a launch has the buffers that its kernel has maps of, and that they are
/// large enough; `at` is the pointer of its buffers.
void checkMappedBuffers(const Kernel &kernel,
                        const std::vector<int64_t> &bufferBytes,
                        const std::string &at, ManifestProblems &problems);
/// What a library is told about a launch's buffers fits them.
void checkLibraries(const Manifest &manifest, const Program &program,
                    const std::string &at, ManifestProblems &problems);

/// The mesh, and the shardings of values over it.
void checkMesh(const Manifest &manifest, ManifestProblems &problems);
/// A stage is one of those that there are, and exchanges inputs and outputs.
void checkPipeline(const Manifest &manifest, ManifestProblems &problems);
/// True if the slot can be a rank's piece of the whole value of that name: of a
/// gradient, ranks may have other pieces than of its value.
bool isPieceOf(const Manifest &manifest, const Slot &slot);
/// Collectives: their axes, and that what they say fits their buffers.
void checkCollectives(const Manifest &manifest, const Program &program,
                      const std::string &at, ManifestProblems &problems);

/// What lies in the host's memory, and the copies that lead there and back.
void checkHostMemory(const Program &program, bool isCpu, const std::string &at,
                     ManifestProblems &problems);

/// What a backward takes from its forward is what the forward gives.
void checkContexts(const Manifest &manifest, ManifestProblems &problems);

/// Checks what is said of slices of an input; `at` is where `ranges` is.
void checkRanges(const Value &value, const std::string &at,
                 ManifestProblems &problems);

/// How the outputs of "evaluate" follow from its inputs and their rows: names,
/// and types that can be so.
void checkRows(const Manifest &manifest, const Program &program,
               const std::string &at, ManifestProblems &problems);

/// Sizes: their names, which programs are of which, and that they differ in the
/// shapes of inputs and outputs alone.
void checkSizes(const Manifest &manifest, ManifestProblems &problems);
/// Gives the arguments of programs of further sizes the types of their values.
void resolveSizes(Manifest &manifest);

/// What "evaluate" takes prepared is what "prepare" gives.
void checkPrepared(const Manifest &manifest, ManifestProblems &problems);

} // namespace tandem::artifact

#endif
