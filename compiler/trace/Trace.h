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
#include "runtime/artifact/Manifest.h"
#include "runtime/artifact/Status.h"

#include <memory>
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

/// While it lives, nothing that is recorded is differentiated.
class NoGradScope {
public:
  explicit NoGradScope(trace::Recorder &recorder);
  NoGradScope(const NoGradScope &) = delete;
  ~NoGradScope();

private:
  trace::Recorder &recorder;
};

struct InputOptions {
  bool requiresGrad = false;
  /// Integers: values are in [0, high); 0 says nothing.
  int64_t high = 0;
};

class Trace {
public:
  explicit Trace(const std::string &name);
  ~Trace();

  Tensor input(const std::string &name, Shape shape, DType dtype = DType::F32,
               InputOptions options = {}, Where where = Where::current());
  Tensor parameter(const std::string &name, Shape shape, Init init,
                   DType dtype = DType::F32, Where where = Where::current());
  Tensor state(const std::string &name, Shape shape, Init init,
               DType dtype = DType::F32, Where where = Where::current());
  /// A tensor with every element `number`.
  Tensor constant(Shape shape, double number, DType dtype = DType::F32,
                  Where where = Where::current());
  /// Each element is its index along `dim`.
  Tensor iota(Shape shape, int64_t dim, DType dtype = DType::I64,
              Where where = Where::current());
  void output(const std::string &name, const Tensor &tensor,
              Where where = Where::current());

  [[nodiscard]] ModuleScope module(const std::string &name);
  [[nodiscard]] NoGradScope noGrad();

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
