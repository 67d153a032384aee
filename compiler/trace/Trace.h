//===- Trace.h - records a program into a captured module -----------------===//
//
//   Trace trace("mlp");
//   Tensor x = trace.input("x", {64, 784});
//   Tensor w = trace.parameter("w", {10, 784}, Init::uniform(-0.1, 0.1));
//   trace.output("logits", linear(x, w));
//   Status status = trace.save("mlp.mlir");
//
// Not for use from several threads.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TRACE_TRACE_H
#define TANDEM_COMPILER_TRACE_TRACE_H

#include "compiler/trace/Tensor.h"
#include "runtime/artifact/Init.h"
#include "runtime/artifact/Status.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tandem {

using artifact::Init;

/// While it lives, names of parameters and ops get `name.` before them.
class ModuleScope {
public:
  ModuleScope(trace::Recorder &recorder, const std::string &name);
  ModuleScope(const ModuleScope &) = delete;
  ~ModuleScope();

private:
  trace::Recorder &recorder;
};

/// While it lives, nothing that is recorded is differentiated. A program that
/// ends while one lives is a mistake.
class NoGradScope {
public:
  explicit NoGradScope(trace::Recorder &recorder,
                       Where where = Where::current());
  NoGradScope(const NoGradScope &) = delete;
  ~NoGradScope();

private:
  trace::Recorder &recorder;
  int scope;
};

/// While it lives, what is recorded is differentiated, in a NoGradScope too.
class EnableGradScope {
public:
  explicit EnableGradScope(trace::Recorder &recorder,
                           Where where = Where::current());
  EnableGradScope(const EnableGradScope &) = delete;
  ~EnableGradScope();

private:
  trace::Recorder &recorder;
  int scope;
};

/// While it lives, what is recorded of f32 is computed in mixed precision:
/// contractions in a low type, softmax, normalizations, losses and sums in f32,
/// and others low where all that they read is (docs/ops.md says it of each op).
/// Tensors keep their types for who records. Without a type it switches mixed
/// precision off, that of `--amp` too. A program that ends while one lives is a
/// mistake.
class AutocastScope {
public:
  /// `low` is BF16 or F16.
  AutocastScope(trace::Recorder &recorder, std::optional<DType> low,
                Where where = Where::current());
  AutocastScope(const AutocastScope &) = delete;
  ~AutocastScope();

private:
  trace::Recorder &recorder;
  int scope;
};

/// While it lives, ops are placed on a stream of the user's.
class StreamScope {
public:
  StreamScope(trace::Recorder &recorder, int64_t stream,
              Where where = Where::current());
  StreamScope(const StreamScope &) = delete;
  ~StreamScope();

private:
  trace::Recorder &recorder;
  int scope;
};

/// While it lives, what is recorded is of one region, a block to compute again:
/// for the backward the values that enter it are kept, and what it computes
/// from them is computed again just before its first use. In it, save() keeps a
/// value all the same.
class CheckpointScope {
public:
  CheckpointScope(trace::Recorder &recorder, const std::string &name,
                  Where where = Where::current());
  CheckpointScope(const CheckpointScope &) = delete;
  ~CheckpointScope();

private:
  trace::Recorder &recorder;
  int scope;
};

/// What an argument says of itself besides its type.
struct InputOptions {
  /// Parameters do if nothing is said, others do not.
  std::optional<bool> requiresGrad = {};
  /// Integer inputs: values are in [0, high); 0 says nothing.
  int64_t high = 0;
  /// The storage is empty when the program is called: it is resized before
  /// anything reads it.
  bool freed = false;
  /// The element type of the gradient, where it is not the tensor's own.
  std::optional<DType> gradType = {};
  /// Further names of a parameter, by which a checkpoint may have it: that of a
  /// model in which two modules share it.
  std::vector<std::string> alsoCalled = {};
};

/// Storage that declared aliases are views of: an argument's, by its name; or,
/// if there is no argument of that name, storage of this type.
struct StorageOf {
  std::string name;
  Shape shape;
  DType dtype = DType::F32;
};

/// The views that lead from a storage's tensor to a declared alias.
using AliasViews = std::function<Tensor(const Tensor &)>;

class Trace {
public:
  explicit Trace(const std::string &name);
  ~Trace();

  Tensor input(const std::string &name, Shape shape, DType dtype = DType::F32,
               InputOptions options = {}, Where where = Where::current());
  Tensor parameter(const std::string &name, Shape shape, Init init,
                   DType dtype = DType::F32, InputOptions options = {},
                   Where where = Where::current());
  Tensor state(const std::string &name, Shape shape, Init init,
               DType dtype = DType::F32, InputOptions options = {},
               Where where = Where::current());
  /// An input that shares storage: the caller's tensor is this view of the
  /// argument `of`, or of storage that several aliases share and that is no
  /// argument.
  ///
  ///   Tensor y = trace.alias("y", "x", [](Tensor x) {
  ///     return x.slice(0, 0, 2).transpose(0, 1); });
  Tensor alias(const std::string &name, const std::string &of,
               const AliasViews &views, InputOptions options = {},
               Where where = Where::current());
  Tensor alias(const std::string &name, const StorageOf &of,
               const AliasViews &views, InputOptions options = {},
               Where where = Where::current());
  /// A tensor with every element `number`.
  Tensor constant(Shape shape, double number, DType dtype = DType::F32,
                  Where where = Where::current());
  /// Each element is its index along `dim`.
  Tensor iota(Shape shape, int64_t dim, DType dtype = DType::I64,
              Where where = Where::current());
  // Random numbers. They follow from the state `random`, which the first draw
  // makes: the seed of the run and how often the program has run. Two draws of
  // a program are independent.
  /// Uniform in [0, 1), of 2^-24 (bf16: 2^-8, f16: 2^-11, f64: 2^-53) steps.
  Tensor uniform(Shape shape, DType dtype = DType::F32,
                 Where where = Where::current());
  /// Of mean 0 and variance 1.
  Tensor normal(Shape shape, DType dtype = DType::F32,
                Where where = Where::current());
  /// True with probability `p`.
  Tensor bernoulli(Shape shape, double p, Where where = Where::current());
  /// I32, each bit 0 or 1 alike.
  Tensor randomBits(Shape shape, Where where = Where::current());

  /// What the tensor holds when the program ends. An output that is an argument
  /// or a view of one, or shares storage with another output, is that very
  /// storage.
  void output(const std::string &name, const Tensor &tensor,
              Where where = Where::current());

  [[nodiscard]] ModuleScope module(const std::string &name);
  [[nodiscard]] NoGradScope noGrad(Where where = Where::current());
  [[nodiscard]] EnableGradScope enableGrad(Where where = Where::current());
  [[nodiscard]] AutocastScope autocast(std::optional<DType> low,
                                       Where where = Where::current());
  [[nodiscard]] StreamScope stream(int64_t number,
                                   Where where = Where::current());

  /// A region of this name, after the open module scopes; each one is another
  /// region, also of the same name.
  [[nodiscard]] CheckpointScope checkpoint(const std::string &name,
                                           Where where = Where::current());
  /// What `block` returns, recorded as such a region.
  template <typename Block>
  auto checkpoint(const std::string &name, const Block &block,
                  Where where = Where::current()) {
    CheckpointScope scope(recorder(), name, where);
    return block();
  }
  /// The value that `tensor` holds is saved for the backward, if that depends
  /// on it. Returns `tensor`.
  Tensor save(const Tensor &tensor, Where where = Where::current());
  /// The same, in the host's memory where the program runs on a device.
  Tensor offload(const Tensor &tensor, Where where = Where::current());
  /// The value is never saved: what needs it computes it again.
  Tensor recompute(const Tensor &tensor, Where where = Where::current());

  /// Ends the recording and returns the module's text; or every mistake of the
  /// program, a line each: "FILE:LINE:COLUMN: error: ...".
  Result<std::string> finish();
  /// Finishes and writes the text to `path` (temporary file, sync, rename).
  Status save(const std::string &path);

  trace::Recorder &recorder() { return *recorder_; }

private:
  std::unique_ptr<trace::Recorder> recorder_;
};

} // namespace tandem

#endif
