//===- Model.h - a loaded artifact and its parameters ---------------------===//
//
// A Model is an artifact in memory: its code, its parameters and states, an
// arena and a thread pool. Calls may come from several threads; those of one
// model run one after the other. Each call checks all its arguments before it
// changes anything, and the message names every argument that is wrong. After
// the first call of a program with given tensors, a call allocates nothing.
//
// Inputs may have any strides and alignment; what is not dense and 64-byte
// aligned is copied first. A destination is a tensor that receives a result: an
// undefined one is set to a new tensor, or to a view where the output is an
// alias of an input or of another output; a defined one is written to. Results
// without a destination are computed and dropped. A new tensor is row-major;
// for the gradient of an input that is a leaf it has the input's strides, if
// these are dense in whatever order.
//
// A model lives on the host or on a device. What it is given may be there or on
// the host; new tensors are there. On a device, calls queue their work on the
// current stream, and return when results that go to the host are there; a
// backward runs on the stream of its forward, and the current stream waits for
// it. Calls of one model on several streams run one after the other. While the
// stream is captured, nothing may be on the host, and no memory be needed that
// earlier calls did not leave: else the call fails before anything is queued,
// and the capture ends without a graph.
//
// Grad mode is whether a context is asked for: then outputs that have gradients
// require grad and are no leaves, and a visible write to a leaf is refused.
//
// An artifact for a mesh of ranks is loaded by each of them. Its tensors are
// pieces of values, as the manifest's shardings say; ranks make the same calls
// in the same order, with pieces of the same values. Nothing but loading and
// looking at the manifest works before `setCommunicator`.
//
// A cotangent may be left out, null or undefined. What only it needs does not
// run, and a gradient that only it feeds comes back undefined: its destination
// is set to an undefined tensor, and memory that it had is left as it is.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_MODEL_MODEL_H
#define TANDEM_RUNTIME_MODEL_MODEL_H

#include "runtime/artifact/ArtifactReader.h"
#include "runtime/artifact/Manifest.h"
#include "runtime/comm/MeshCommunicators.h"
#include "runtime/tensor/Tensor.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::runtime {

struct Options {
  int threads = 0;   ///< 0: one for each processor this process may use
  uint64_t seed = 0; ///< of the initial parameters and states
  /// Where the model lives and runs. None: the host if the artifact has code
  /// for it, else device 0 of the artifact's first target.
  std::optional<Device> device = {};
  /// On the host, of several variants the one for this processor (LLVM's name).
  /// Empty: of those that can run here the one that uses most features.
  std::string cpuVariant = {};
  bool useGraphs = true; ///< a device may record programs and replay them
  /// A device may compute what the artifact marks with a vendor's library.
  bool useLibraries = true;
  /// A file with a public key (Ed25519 in PEM): an artifact that has no
  /// signature by it beside itself, PATH.sig, is not loaded.
  std::string requireSignature = {};
  /// The most bytes that this process may have of the memory of the model's GPU
  /// from now on, other models' and tensors' included. 0: as it was.
  int64_t memoryLimit = 0;
};

/// A tensor that goes into a call. A program that changes what the handle shows
/// (its strides, its storage, whether it requires grad) needs one that is not
/// const.
struct Argument {
  Argument(std::string_view name, const Tensor *tensor)
      : name(name), tensor(tensor) {}
  Argument(std::string_view name, Tensor *tensor)
      : name(name), tensor(tensor), handle(tensor) {}
  Argument(std::string_view name, std::nullptr_t) : name(name) {}

  std::string_view name;
  const Tensor *tensor = nullptr;
  Tensor *handle = nullptr;
};

/// A tensor that comes out of a call.
struct Destination {
  std::string_view name;
  Tensor *tensor;
};

struct BackwardOptions {
  bool retainGraph = false; ///< keep the context for another backward
  /// Run with gradients enabled: refused if the backward writes an input that
  /// requires grad (the manifest's `mutated_in_backward`).
  bool createGraph = false;
};

/// What a forward does with each value that it saves, instead of holding it:
/// offload it, compress it. Hooks run on the calling thread while the model is
/// busy: they must not call it. With hooks no versions are compared. An error
/// of a hook is that of the call, as it is.
struct SavedHooks {
  /// Gets each value after the forward ran; must not write it.
  std::function<Result<std::shared_ptr<void>>(std::string_view name,
                                              const Tensor &value)>
      pack;
  /// Gives the value back, with its type and shape, before each use.
  std::function<Result<Tensor>(std::string_view name,
                               const std::shared_ptr<void> &packed)>
      unpack;
};

struct MemoryUse {
  int64_t planned; ///< the largest `peak_bytes` of the programs
  int64_t current; ///< bytes charged to the model now
  int64_t peak;    ///< the largest `current` so far
  int64_t host;    ///< beside them: pinned memory of the host, for a device
};

class ModelCore;
struct CallMode;
struct ContextState;
struct RunTimes;

/// While it lives, calls of a model on other threads wait, and those of the
/// thread that made it run: a checkpoint has values of one moment. Movable. It
/// ends on that thread.
class Hold {
public:
  Hold(Hold &&other) noexcept = default;
  Hold &operator=(Hold &&) = delete;
  ~Hold();

private:
  friend class Model;
  explicit Hold(std::shared_ptr<ModelCore> core) : core_(std::move(core)) {}
  std::shared_ptr<ModelCore> core_;
};

/// What a forward saved for its backward. Movable; an empty one (default or
/// moved from) is refused. Dropping it gives its buffers back to the model; it
/// may outlive the model.
class Context {
public:
  Context() = default;
  explicit Context(std::shared_ptr<ContextState> state);
  Context(Context &&other) noexcept = default;
  Context &operator=(Context &&other) noexcept;
  ~Context();

  /// True if a backward can still use it.
  bool live() const;

private:
  friend class Model;
  std::shared_ptr<ContextState> state_;
};

class Model {
public:
  static Result<Model> load(const std::string &path,
                            const Options &options = {});
  static Result<Model> load(artifact::ArtifactReader reader,
                            const Options &options = {});

  const artifact::Manifest &manifest() const;
  /// Of several sizes the manifest of one, by its place among `sizes`.
  const artifact::Manifest &manifestOfSize(size_t number) const;
  /// The same with the shapes of the values that all ranks have together. Its
  /// inputs, params, states and outputs are not what one rank's calls take.
  const artifact::Manifest &wholeManifest() const;
  const artifact::ArtifactReader &reader() const;
  int threads() const;
  Device device() const;
  /// Returns which of the artifact's code runs: "cpu x86-64-v3", "cuda sm_90a,
  /// cubin, 3 of 4 calls of libraries".
  std::string code() const;
  bool hasProgram(std::string_view name) const;

  /// Gives the model the ranks that it computes with; all of them call it. Then
  /// parameters and states begin as those of one process would: each rank has
  /// its piece of the same values. Fails with Usage unless there are as many
  /// as the artifact's mesh has. Does nothing where that is one.
  Status setCommunicator(std::shared_ptr<comm::Communicator> world);
  /// Returns what it was given; null where there is none, or no mesh.
  const comm::MeshCommunicators *communicators() const;

  /// Waits for the calls of other threads. Fails in a hook of the model, and in
  /// another hold of this thread.
  Result<Hold> hold() const;

  /// Returns the parameter or state `name`; the tensor shares its storage.
  Result<Tensor> get(std::string_view name) const;
  /// Overwrites the parameter or state `name`: same type and shape, any
  /// strides. Bumps its version.
  Status set(std::string_view name, const Tensor &tensor);
  /// The same of the value that all ranks have together; all of them call it.
  /// The tensor is on the host, and a copy where there are pieces.
  Result<Tensor> getWhole(std::string_view name) const;
  /// Overwrites this rank's piece by that of `whole`, which is on the host.
  Status setWhole(std::string_view name, const Tensor &whole);
  /// Sets every parameter and state that has an `init` anew. Equal seeds give
  /// equal bits; a tensor depends on the seed and its own name only (kind
  /// `counter`: on the seed and the stream).
  Status initialize(uint64_t seed);

  /// Runs a program that needs nothing but inputs, params and states
  /// ("evaluate", "step", "forward"). `inputs` are exactly the program's;
  /// `outputs` may name its outputs and gradients, once each.
  Status run(std::string_view program, std::span<const Argument> inputs,
             std::span<const Destination> outputs);

  /// The same, but computes only what `outputs` need: inputs that none of them
  /// follows from may be left out. The program must update nothing.
  Status runWanted(std::string_view program, std::span<const Argument> inputs,
                   std::span<const Destination> outputs);

  /// The same as `run` on the host, and sets `times` to what the run took.
  /// Unsupported on a device.
  Status runTimed(std::string_view program, std::span<const Argument> inputs,
                  std::span<const Destination> outputs, RunTimes &times);

  /// Runs "forward" and keeps what "backward" needs; the context is empty where
  /// there is no "backward". A hook that fails fails
  /// the call: outputs and updates are written, but there is no context.
  Result<Context> forward(std::span<const Argument> inputs,
                          std::span<const Destination> outputs,
                          std::shared_ptr<const SavedHooks> hooks = nullptr);

  /// Runs "backward". `cotangents` are named as the outputs they belong to (or
  /// "update of x", for what an input was visibly overwritten with), `grads` as
  /// the params and inputs. A saved value, input, param or state that was
  /// written since the forward is an error. A failed check leaves the context
  /// as it was; a failure while running releases it.
  ///
  /// With `graph`, runs "grad_forward" under `createGraph`, and sets *graph to
  /// a context whose backward ("grad_backward") differentiates the gradients:
  /// its cotangents are named "grad of w", its gradients as params, inputs and
  /// "cotangent of loss". *graph stays empty if no cotangent is defined.
  Status backward(Context &context, std::span<const Argument> cotangents,
                  std::span<const Destination> grads,
                  const BackwardOptions &options = {},
                  Context *graph = nullptr);

  /// Runs "update" with one gradient for each param it wants. Where one is
  /// undefined, the param and what the optimizer keeps for it stay as they are.
  Status update(std::span<const Argument> grads);

  /// Runs "step": forward, backward and update.
  Status step(std::span<const Argument> inputs,
              std::span<const Destination> outputs);

  MemoryUse memory() const;

private:
  explicit Model(std::shared_ptr<ModelCore> core);
  Status run(std::string_view program, std::span<const Argument> inputs,
             std::span<const Destination> outputs, const CallMode &mode);
  std::shared_ptr<ModelCore> core_;
};

} // namespace tandem::runtime

#endif
