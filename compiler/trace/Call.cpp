//===- Call.cpp - calls of functions by name ------------------------------===//
#include "compiler/trace/Call.h"
#include "compiler/trace/Recorder.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

static Attribute attributeOf(Builder b, const AttributeValue &value) {
  struct Make {
    Builder &b;
    Attribute operator()(bool x) { return b.getBoolAttr(x); }
    Attribute operator()(int64_t x) { return b.getI64IntegerAttr(x); }
    Attribute operator()(double x) { return b.getF64FloatAttr(x); }
    Attribute operator()(const std::string &x) { return b.getStringAttr(x); }
    Attribute operator()(const Shape &x) { return b.getDenseI64ArrayAttr(x); }
    Attribute operator()(const std::vector<double> &x) {
      return b.getDenseF64ArrayAttr(x);
    }
  };
  return std::visit(Make{b}, value.value);
}

std::vector<Tensor> tandem::call(const std::string &function,
                                 const std::vector<Tensor> &operands,
                                 const std::vector<NamedValue> &attributes,
                                 Where where) {
  // Nobody can be told of a mistake if no operand belongs to a trace.
  constexpr size_t more = 16;
  Recorder *recorder = nullptr;
  for (const Tensor &operand : operands)
    recorder = recorder ? recorder : operand.recorder();
  std::vector<Tensor> invalid(more, Tensor(recorder, -1));
  if (!recorder)
    return invalid;
  Builder b = recorder->attributes();
  SmallVector<NamedAttribute> list;
  for (const NamedValue &attribute : attributes)
    list.push_back(
        b.getNamedAttr(attribute.name, attributeOf(b, attribute.value)));
  std::vector<Tensor> results =
      recorder->recordCall(function, operands, list, where);
  return results.empty() ? invalid : results;
}
