//===- AskedSchedule.cpp - a kernel's schedule, said and not modelled -----===//
#include "passes/lower/cpu/AskedSchedule.h"
using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;

/// The most that a schedule may ask for; a tile is written out in code.
static constexpr int64_t kMostRows = 32, kMostVectors = 8,
                         kMostBlock = int64_t(1) << 40;

static LogicalResult read(KernelOp kernel, NamedAttribute attr,
                          AskedSchedule &asked) {
  StringRef name = attr.getName();
  auto number = [&](int64_t &to, int64_t most) -> LogicalResult {
    auto value = dyn_cast<IntegerAttr>(attr.getValue());
    if (!value || !value.getType().isSignlessInteger(64) ||
        value.getInt() < 1 || value.getInt() > most)
      return kernel.emitOpError()
             << "expected '" << name << "' of its schedule to be an i64 of 1 "
             << "to " << most << ", but got " << attr.getValue();
    to = value.getInt();
    return success();
  };
  auto flag = [&](std::optional<bool> &to) -> LogicalResult {
    auto value = dyn_cast<BoolAttr>(attr.getValue());
    if (!value)
      return kernel.emitOpError() << "expected '" << name
                                  << "' of its schedule to be true or false, "
                                     "but got "
                                  << attr.getValue();
    to = value.getValue();
    return success();
  };
  if (name == "rows")
    return number(asked.rows, kMostRows);
  if (name == "vectors")
    return number(asked.vectors, kMostVectors);
  if (name == "block")
    return number(asked.block, kMostBlock);
  if (name == "columns")
    return number(asked.columns, kMostBlock);
  if (name == "packs")
    return flag(asked.packs);
  if (name == "ahead")
    return flag(asked.ahead);
  if (name == "method") {
    auto value = dyn_cast<StringAttr>(attr.getValue());
    if (!value || !llvm::is_contained(AskedSchedule::methods, value.getValue()))
      return kernel.emitOpError() << "expected 'method' of its schedule to be "
                                     "\"winograd\", \"direct\" or "
                                     "\"windows\", but got "
                                  << attr.getValue();
    asked.method = value.getValue();
    return success();
  }
  return kernel.emitOpError() << "expected its schedule to have 'method', "
                                 "'rows', 'vectors', 'block', 'columns', "
                                 "'packs' and 'ahead', but got '"
                              << name << "'";
}

FailureOr<AskedSchedule> AskedSchedule::of(KernelOp kernel) {
  AskedSchedule asked;
  Attribute attribute = kernel->getAttr(kScheduleAttr);
  if (!attribute)
    return asked;
  auto dictionary = dyn_cast<DictionaryAttr>(attribute);
  if (!dictionary) {
    kernel.emitOpError() << "expected 'schedule' to be a dictionary, but got "
                         << attribute;
    return failure();
  }
  for (NamedAttribute attr : dictionary)
    if (failed(read(kernel, attr, asked)))
      return failure();
  return asked;
}

AskedSchedule AskedSchedule::checked(KernelOp kernel) {
  FailureOr<AskedSchedule> asked = of(kernel);
  assert(succeeded(asked) && "emitAnchor has checked it");
  return succeeded(asked) ? *asked : AskedSchedule();
}

DictionaryAttr AskedSchedule::attribute(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList list;
  if (rows)
    list.set("rows", b.getI64IntegerAttr(rows));
  if (vectors)
    list.set("vectors", b.getI64IntegerAttr(vectors));
  if (block)
    list.set("block", b.getI64IntegerAttr(block));
  if (columns)
    list.set("columns", b.getI64IntegerAttr(columns));
  if (packs)
    list.set("packs", b.getBoolAttr(*packs));
  if (ahead)
    list.set("ahead", b.getBoolAttr(*ahead));
  if (!method.empty())
    list.set("method", b.getStringAttr(method));
  return list.getDictionary(context);
}
