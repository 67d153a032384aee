//===- CustomVjp.cpp - pieces of a program with a backward of their own ---===//
#include "compiler/trace/CustomVjp.h"
#include "compiler/capture/CustomRegions.h"
#include "compiler/trace/Recorder.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

void Saver::save(const Tensor &tensor, Where where) {
  keep(tensor, /*unchecked=*/false, where);
}
void Saver::saveUnchecked(const Tensor &tensor, Where where) {
  keep(tensor, /*unchecked=*/true, where);
}

void Saver::keep(const Tensor &tensor, bool unchecked, Where where) {
  Tensor snapshot(recorder, -1);
  if (recorder && recorder->usable(tensor, where)) {
    Location loc = recorder->location(where, "save");
    snapshot = recorder->add(
        MakeRefOp::create(recorder->ops(), loc, recorder->read(tensor, loc)));
  }
  kept.push_back({snapshot, unchecked});
}

namespace tandem {

/// Records one custom_vjp: forward(), backward(), finish().
class CustomVjpRecording {
public:
  CustomVjpRecording(Recorder &recorder, const std::string &name,
                     const Tensors &inputs, const Tensors &refs, Where where)
      : r(recorder), where(where), loc(r.location(where, name)),
        regions(name, loc, valuesOf(inputs), refsOf(refs)) {}

  /// False after a mistake.
  bool forward(const CustomForward &function);
  bool backward(const CustomBackward &function);
  Tensors finish(CustomVjpOptions options);
  /// How many results a forward gives to tensors that are not valid.
  static size_t resultsOf(const CustomForward &function, size_t inputs,
                          size_t refs, const Tensor &invalid) {
    Saver saver(invalid.recorder());
    return function(Tensors(inputs, invalid), Tensors(refs, invalid), saver)
        .size();
  }

  size_t results = 0; ///< how many the forward gave

private:
  SmallVector<Value> valuesOf(const Tensors &tensors) {
    SmallVector<Value> values;
    for (const Tensor &tensor : tensors)
      values.push_back(r.read(tensor, loc));
    return values;
  }
  SmallVector<Value> refsOf(const Tensors &tensors) {
    SmallVector<Value> refs;
    for (const Tensor &tensor : tensors)
      refs.push_back(r.refOf(tensor));
    return refs;
  }
  Tensors add(ArrayRef<Value> refs) {
    Tensors tensors;
    for (Value ref : refs)
      tensors.push_back(r.add(ref));
    return tensors;
  }

  Recorder &r;
  Where where;
  Location loc;
  CustomRegions regions;
};

} // namespace tandem

bool CustomVjpRecording::forward(const CustomForward &function) {
  Block &block = regions.forwardBlock();
  RegionScope scope(r, block, "the forward of " + regions.str());
  SmallVector<Value> values;
  regions.beginForward(r.ops(), values);
  Saver saver(&r);
  Tensors given = function(add(values), add(regions.refsOf(block)), saver);
  results = given.size();
  r.closeScopes();
  if (!r.usable(given, where))
    return false;
  SmallVector<Value> saved;
  SmallVector<int64_t> unchecked;
  for (auto [i, keep] : llvm::enumerate(saver.kept)) {
    if (!keep.first.valid())
      return false;
    saved.push_back(r.read(keep.first, loc));
    if (keep.second)
      unchecked.push_back(static_cast<int64_t>(i));
  }
  return regions.endForward(r.ops(), refsOf(given), saved, unchecked);
}

bool CustomVjpRecording::backward(const CustomBackward &function) {
  Block &block = regions.backwardBlock();
  RegionScope scope(r, block, "the backward of " + regions.str());
  SmallVector<Value> saved, cotangents;
  regions.beginBackward(r.ops(), saved, cotangents);
  Tensors given =
      function(add(saved), add(cotangents), add(regions.refsOf(block)));
  r.closeScopes();
  SmallVector<Value> gradients;
  for (const Tensor &gradient : given) {
    bool none = !gradient.recorder();
    if (!none && !r.usable(gradient, where))
      return false;
    gradients.push_back(none ? Value() : r.refOf(gradient));
  }
  return regions.endBackward(r.ops(), gradients);
}

Tensors CustomVjpRecording::finish(CustomVjpOptions options) {
  auto op = regions.build(r.ops(), options.undefinedCotangents,
                          options.firstOrder, r.tags());
  if (failed(op))
    return Tensors(results, Tensor(&r, -1));
  Tensors tensors;
  for (Value result : op->getResults())
    tensors.push_back(r.add(MakeRefOp::create(r.ops(), loc, result)));
  return tensors;
}

Tensors tandem::customVjp(const std::string &name, const Tensors &inputs,
                          const Tensors &refs, const CustomForward &forward,
                          const CustomBackward &backward,
                          CustomVjpOptions options, Where where) {
  Tensors operands = inputs;
  operands.insert(operands.end(), refs.begin(), refs.end());
  Recorder *recorder = recorderOf(operands);
  Tensor invalid(recorder, -1);
  bool ok = recorder && recorder->usable(operands, where);
  if (ok && recorder->inRegion()) {
    recorder->mistake(where, "expected a custom_vjp not to stand inside of " +
                                 Twine(recorder->regionName()));
    ok = false;
  }
  if (!ok)
    return Tensors(CustomVjpRecording::resultsOf(forward, inputs.size(),
                                                 refs.size(), invalid),
                   invalid);
  CustomVjpRecording recording(*recorder, name, inputs, refs, where);
  if (recording.forward(forward) && recording.backward(backward))
    return recording.finish(options);
  return Tensors(recording.results, invalid);
}
