//===- Flow.cpp - branches and loops that data decides --------------------===//
#include "compiler/trace/Flow.h"
#include "compiler/capture/FlowRegion.h"
#include "compiler/trace/Recorder.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

namespace {

/// One op with regions while it is recorded.
class FlowRecording {
public:
  FlowRecording(Recorder &recorder, const char *name, Where where)
      : r(recorder), where(where), loc(r.location(where, name)) {}

  SmallVector<Value> valuesOf(const Tensors &tensors) {
    SmallVector<Value> values;
    for (const Tensor &tensor : tensors)
      values.push_back(r.read(tensor, loc));
    return values;
  }
  /// Records what `function` makes of the region's arguments. False after a
  /// mistake; `count` is how many results there are all the same.
  bool record(FlowRegion &region,
              llvm::function_ref<Tensors(const Tensors &)> function,
              size_t &count) {
    RegionScope scope(r, region.block(), region.str());
    Tensors arguments;
    for (Value ref : region.begin(r.ops()))
      arguments.push_back(r.add(ref));
    Tensors given = function(arguments);
    count = given.size();
    r.closeScopes();
    if (!r.usable(given, where))
      return false;
    SmallVector<Value> refs;
    for (const Tensor &tensor : given)
      refs.push_back(r.refOf(tensor));
    return region.end(r.ops(), refs);
  }
  /// The results, or `count` invalid tensors.
  Tensors finish(FailureOr<Operation *> op, size_t count) {
    if (failed(op))
      return Tensors(count, Tensor(&r, -1));
    Tensors tensors;
    for (Value result : (*op)->getResults())
      tensors.push_back(r.add(MakeRefOp::create(r.ops(), loc, result)));
    return tensors;
  }

  Recorder &r;
  Where where;
  Location loc;
};

} // namespace

static Tensors joined(std::initializer_list<Tensors> lists) {
  Tensors all;
  for (const Tensors &list : lists)
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// The tensors of `all` from `first` on, `count` of them.
static Tensors part(const Tensors &all, size_t first, size_t count) {
  return Tensors(all.begin() + first, all.begin() + first + count);
}

Tensors tandem::cond(const Tensor &condition, const Tensors &inputs,
                     const Branch &then, const Branch &otherwise, Where where) {
  Tensors operands = joined({{condition}, inputs});
  Recorder *recorder = recorderOf(operands);
  Tensor invalid(recorder, -1);
  auto after = [&] {
    size_t count = then(Tensors(inputs.size(), invalid)).size();
    return Tensors(count, invalid);
  };
  if (!recorder || !recorder->usable(operands, where))
    return after();
  auto truth = RankedTensorType::get({}, recorder->ops().getI1Type());
  if (recorder->typeOf(condition).getTensorType() != truth) {
    recorder->mistake(where, "expected the condition to be one bool");
    return after();
  }
  FlowRecording recording(*recorder, "if", where);
  SmallVector<Value> values = recording.valuesOf(operands);
  ValueRange rest = ArrayRef(values).drop_front();
  FlowRegion yes("the branch 'then'", recording.loc, rest.getTypes());
  FlowRegion no("the branch 'else'", recording.loc, rest.getTypes());
  size_t count = 0, other = 0;
  bool ok = recording.record(yes, then, count);
  ok &= recording.record(no, otherwise, other);
  if (!ok)
    return Tensors(count, invalid);
  return recording.finish(buildIf(recorder->ops(), recording.loc, values[0],
                                  rest, yes, no, recorder->tags()),
                          count);
}

ScanStep tandem::scan(const Tensors &carries, const Tensors &inputs,
                      const Tensors &constants, const ScanBody &body,
                      const ScanOptions &options, Where where) {
  size_t numCarries = carries.size(), numInputs = inputs.size();
  Tensors operands = joined({carries, inputs, constants});
  if (options.trips.recorder())
    operands.push_back(options.trips);
  Recorder *recorder = recorderOf(operands);
  Tensor invalid(recorder, -1);
  // What the body gives, one list.
  size_t numStepCarries = 0;
  auto function = [&](const Tensors &all) {
    ScanStep step =
        body(part(all, 0, numCarries), part(all, numCarries, numInputs),
             part(all, numCarries + numInputs, constants.size()));
    numStepCarries = step.carries.size();
    return joined({step.carries, step.outputs});
  };
  auto split = [&](const Tensors &all) -> ScanStep {
    size_t first = std::min(numCarries, all.size());
    return {part(all, 0, first), part(all, first, all.size() - first)};
  };
  auto after = [&] {
    size_t arguments = numCarries + numInputs + constants.size();
    size_t count = function(Tensors(arguments, invalid)).size();
    return split(Tensors(std::max(count, numCarries), invalid));
  };
  if (!recorder || !recorder->usable(operands, where))
    return after();
  FlowRecording recording(*recorder, "scan", where);
  ScanParts parts;
  parts.reverse = options.reverse;
  parts.carries = recording.valuesOf(carries);
  parts.inputs = recording.valuesOf(inputs);
  parts.constants = recording.valuesOf(constants);
  if (options.trips.recorder()) {
    parts.trips = recorder->read(options.trips, recording.loc);
    auto one = RankedTensorType::get({}, recorder->ops().getI64Type());
    if (parts.trips.getType() != one) {
      recorder->mistake(where, "expected the trips to be one i64");
      return after();
    }
  }
  if (options.length) {
    parts.length = *options.length;
  } else {
    auto type = parts.inputs.empty()
                    ? RankedTensorType()
                    : cast<RankedTensorType>(parts.inputs[0].getType());
    if (!type || type.getRank() == 0) {
      recorder->mistake(where, "expected a length, or inputs with slices");
      return after();
    }
    parts.length = type.getDimSize(0);
  }
  auto types = parts.argumentTypes(recording.loc);
  if (failed(types))
    return after();
  FlowRegion region("the body of 'scan'", recording.loc, *types);
  size_t count = 0;
  if (!recording.record(region, function, count))
    return split(Tensors(std::max(count, numCarries), invalid));
  if (numStepCarries != numCarries) {
    recorder->mistake(where, "expected the body of 'scan' to give " +
                                 Twine(numCarries) + " carries, but got " +
                                 Twine(numStepCarries));
    return split(Tensors(std::max(count, numCarries), invalid));
  }
  return split(recording.finish(buildScan(recorder->ops(), recording.loc, parts,
                                          region, recorder->tags()),
                                count));
}

Tensors tandem::whileLoop(
    const Tensors &carries, const Tensors &constants,
    const std::function<Tensor(const Tensors &, const Tensors &)> &condition,
    const std::function<Tensors(const Tensors &, const Tensors &)> &body,
    Where where) {
  Tensors operands = joined({carries, constants});
  Recorder *recorder = recorderOf(operands);
  Tensors invalid(carries.size(), Tensor(recorder, -1));
  if (!recorder || !recorder->usable(operands, where))
    return invalid;
  FlowRecording recording(*recorder, "while", where);
  SmallVector<Value> values = recording.valuesOf(operands);
  TypeRange types = ValueRange(values).getTypes();
  FlowRegion test("the condition of 'while'", recording.loc, types);
  FlowRegion step("the body of 'while'", recording.loc, types);
  size_t count = 0;
  size_t numCarries = carries.size(), numConstants = constants.size();
  bool ok = recording.record(
      test,
      [&](const Tensors &all) -> Tensors {
        return {condition(part(all, 0, numCarries),
                          part(all, numCarries, numConstants))};
      },
      count);
  ok &= recording.record(
      step,
      [&](const Tensors &all) {
        return body(part(all, 0, numCarries),
                    part(all, numCarries, numConstants));
      },
      count);
  if (!ok)
    return invalid;
  auto all = ArrayRef(values);
  return recording.finish(
      buildWhile(recorder->ops(), recording.loc, all.take_front(numCarries),
                 all.drop_front(numCarries), test, step, recorder->tags()),
      numCarries);
}
