//===- CustomVjp.h - pieces of a program with a backward of their own -----===//
//
//   Tensor y = customVjp("scale", {x}, {},
//       [](const Tensors &in, const Tensors &, Saver &saver) -> Tensors {
//         saver.save(in[0]);
//         return {in[0] * in[0]};
//       },
//       [](const Tensors &saved, const Tensors &dy, const Tensors &) -> Tensors
//       {
//         return {dy[0] * saved[0] * 2.0};
//       })[0];
//
// Both functions are recorded at once, each into a region of its own: what they
// compute with is handed to them, and tensors of the program outside are a
// mistake there. What they write among `refs` is found and declared; anything
// else that reaches outside is a mistake.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TRACE_CUSTOMVJP_H
#define TANDEM_COMPILER_TRACE_CUSTOMVJP_H

#include "compiler/trace/Trace.h"

namespace tandem {

using Tensors = std::vector<Tensor>;

/// Keeps values of a forward for its backward.
class Saver {
public:
  /// What `tensor` holds now. That it is overwritten before the backward is an
  /// error.
  void save(const Tensor &tensor, Where where = Where::current());
  /// The same for a value that may be overwritten.
  void saveUnchecked(const Tensor &tensor, Where where = Where::current());

private:
  friend class CustomVjpRecording;
  explicit Saver(trace::Recorder *recorder) : recorder(recorder) {}
  void keep(const Tensor &tensor, bool unchecked, Where where);

  trace::Recorder *recorder;
  std::vector<std::pair<Tensor, bool>> kept; ///< snapshots; unchecked?
};

/// Gets the values of `inputs` and the `refs`; returns the results.
using CustomForward = std::function<Tensors(const Tensors &values,
                                            const Tensors &refs, Saver &saver)>;
/// Gets what the forward saved, in that order, a cotangent per result (which it
/// may write) and the `refs` as they are when it runs; returns a gradient per
/// input, `Tensor()` where there is none.
using CustomBackward = std::function<Tensors(
    const Tensors &saved, const Tensors &cotangents, const Tensors &refs)>;

struct CustomVjpOptions {
  /// Cotangents that nobody defined arrive as they are, and what follows from
  /// them is undefined; otherwise they are zeros.
  bool undefinedCotangents = false;
  /// The backward cannot be differentiated.
  bool firstOrder = false;
};

/// Records `forward`, with `backward` as its gradient. Gradients flow to
/// `inputs`, which are read; `refs` may be written by both. Returns the results
/// of the forward, which share no storage with anything.
Tensors customVjp(const std::string &name, const Tensors &inputs,
                  const Tensors &refs, const CustomForward &forward,
                  const CustomBackward &backward, CustomVjpOptions options = {},
                  Where where = Where::current());

} // namespace tandem

#endif
