//===- AskedSchedule.cpp - a kernel's schedule, said and not modelled -----===//
#include "passes/lower/cpu/AskedSchedule.h"
#include "passes/lower/common/Anchor.h"
#include "passes/lower/cpu/TileProduct.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;

static constexpr StringLiteral kMethods[] = {"winograd", "direct", "windows"};

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
  if (name == "rows")
    return number(asked.rows, kMostRows);
  if (name == "vectors")
    return number(asked.vectors, kMostVectors);
  if (name == "block")
    return number(asked.block, kMostBlock);
  if (name == "packs") {
    auto value = dyn_cast<BoolAttr>(attr.getValue());
    if (!value)
      return kernel.emitOpError() << "expected 'packs' of its schedule to be "
                                     "true or false, but got "
                                  << attr.getValue();
    asked.packs = value.getValue();
    return success();
  }
  if (name == "method") {
    auto value = dyn_cast<StringAttr>(attr.getValue());
    if (!value || !llvm::is_contained(kMethods, value.getValue()))
      return kernel.emitOpError() << "expected 'method' of its schedule to be "
                                     "\"winograd\", \"direct\" or "
                                     "\"windows\", but got "
                                  << attr.getValue();
    asked.method = value.getValue();
    return success();
  }
  return kernel.emitOpError() << "expected its schedule to have 'method', "
                                 "'rows', 'vectors', 'block' and 'packs', but "
                                 "got '"
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
  if (packs)
    list.set("packs", b.getBoolAttr(*packs));
  if (!method.empty())
    list.set("method", b.getStringAttr(method));
  return list.getDictionary(context);
}

/// The family of the kernel's anchor; none where that takes no schedule: matrix
/// tiles have one size.
static AnchorFamily anchorFamilyOf(KernelOp kernel) {
  AnchorFamily family = AnchorFamily::None;
  for (Operation &op : kernel.getBody().front())
    if (AnchorFamily one = lower::familyOf(op.getName());
        one != AnchorFamily::None)
      family = one == AnchorFamily::Matmul && takesTiles(&op)
                   ? AnchorFamily::None
                   : one;
  return family;
}

/// Tiles whose sums, a row of the right factor and an element of the left one
/// fill the registers.
static void addTiles(SmallVectorImpl<AskedSchedule> &list,
                     const VectorTarget &target, AskedSchedule from) {
  constexpr int64_t most = 14; // rows
  for (int64_t vectors = 1; vectors <= 6; ++vectors) {
    int64_t rows =
        std::min<int64_t>((target.registers - 2 - vectors) / vectors, most);
    if (rows < 2)
      break;
    from.rows = rows;
    from.vectors = vectors;
    list.push_back(from);
  }
}

SmallVector<AskedSchedule> cpu::scheduleCandidates(KernelOp kernel,
                                                   const VectorTarget &target) {
  SmallVector<AskedSchedule> list;
  switch (anchorFamilyOf(kernel)) {
  case AnchorFamily::Matmul:
    addTiles(list, target, {});
    break;
  case AnchorFamily::Convolution:
    for (StringRef method : kMethods) {
      AskedSchedule asked;
      asked.method = method;
      list.push_back(asked);
    }
    break;
  default:
    break;
  }
  return list;
}

SmallVector<AskedSchedule> cpu::scheduleNeighbours(KernelOp kernel,
                                                   const AskedSchedule &best) {
  SmallVector<AskedSchedule> list;
  bool isProduct = anchorFamilyOf(kernel) == AnchorFamily::Matmul;
  if (!isProduct && best.method != "windows")
    return list;
  for (int64_t block : {48, 96, 192, 384, 768}) {
    list.push_back(best);
    list.back().block = block;
  }
  for (bool packs : {false, true}) {
    list.push_back(best);
    list.back().packs = packs;
  }
  return list;
}
