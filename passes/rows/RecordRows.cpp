//===- RecordRows.cpp - what outputs follow from --------------------------===//
//
// Says in the roles of @evaluate's outputs which inputs they follow from and
// how they go over the rows of a batch. Before ops are merged and fused:
// afterwards a kernel may read what only a part of it needs.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/rows/RowStates.h"

#include "ir/Signature.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/ADT/SetVector.h"

namespace tandem {
#define GEN_PASS_DEF_RECORDROWS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// The names of the inputs that values follow from, in the order of the
/// arguments.
class Origins {
public:
  explicit Origins(func::FuncOp func) : func(func) {
    for (BlockArgument argument : func.getArguments()) {
      llvm::BitVector &set = sets[argument];
      set.resize(func.getNumArguments());
      set.set(argument.getArgNumber());
    }
    for (Operation &op : func.getBody().front()) {
      llvm::BitVector set(func.getNumArguments());
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (auto it = sets.find(operand); it != sets.end())
            set |= it->second;
      });
      for (Value result : op.getResults())
        sets[result] = set;
    }
  }

  ArrayAttr of(Value value) {
    Builder b(func.getContext());
    SmallVector<Attribute> names;
    for (unsigned index : sets.find(value)->second.set_bits())
      if (RoleAttr role = roleOfArgument(func, index);
          role && role.getKind() == RoleKind::Input)
        names.push_back(role.getName());
    return b.getArrayAttr(names);
  }

private:
  func::FuncOp func;
  llvm::DenseMap<Value, llvm::BitVector> sets;
};

struct RecordRows : tandem::impl::RecordRowsBase<RecordRows> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate"))
      record(evaluate);
  }

  static void record(func::FuncOp func) {
    RowStates states(func);
    Origins origins(func);
    Operation *end = func.getBody().front().getTerminator();
    SmallVector<RoleAttr> roles;
    for (auto [i, value] : llvm::enumerate(end->getOperands())) {
      RoleAttr role = roleOfResult(func, static_cast<unsigned>(i));
      if (role.getKind() == RoleKind::Output)
        role = withRows(role.with(RoleAttr::kInputs, origins.of(value)), value,
                        states, func);
      roles.push_back(role);
    }
    setRolesOfResults(func, roles);
  }

  static RoleAttr withRows(RoleAttr role, Value value, const RowStates &states,
                           func::FuncOp func) {
    using Kind = RowState::Kind;
    Builder b(func.getContext());
    RowState state = states.of(value);
    if (state.is(Kind::Each) && state.dim == 0 && state.block == 1 &&
        state.repeats == 1)
      return role.with(RoleAttr::kRows, b.getStringAttr("each"));
    bool isMean =
        state.is(Kind::Sum) || state.is(Kind::Mean) || state.is(Kind::Constant);
    if (isMean)
      return role.with(RoleAttr::kRows, b.getStringAttr("mean"));
    if (!state.is(Kind::Weighted))
      return role;
    // The runtime knows what is ignored from the input.
    auto index = findArgument(func, RoleKind::Input, state.counted);
    auto ignored = index ? roleOfArgument(func, *index)
                               .getProperty<IntegerAttr>(RoleAttr::kIgnored)
                         : IntegerAttr();
    if (!ignored || ignored.getInt() != state.ignored)
      return role;
    return role.with(RoleAttr::kRows, b.getStringAttr("mean"))
        .with(RoleAttr::kCounted, b.getStringAttr(state.counted));
  }
};

} // namespace
