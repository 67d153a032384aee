//===- WarpgroupCode.cpp - bulk copies and wgmma as formulas --------------===//
//
// To LLVM a product is an instruction whose results are there at once. What
// orders it with arithmetic on its registers, wgmma.fence before and
// wgmma.wait_group behind, is therefore written as assembly through which these
// registers pass.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/products/WarpgroupCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

/// A hint: how long a wait may sleep, in nanoseconds.
static constexpr int64_t patience = 1000000;

Value WarpgroupCode::bits(int64_t value) {
  return arith::ConstantOp::create(
      code.b, code.loc, code.b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value WarpgroupCode::word(Value index) {
  return arith::IndexCastOp::create(code.b, code.loc, code.b.getI64Type(),
                                    index);
}

Value WarpgroupCode::addressOf(Value memref) {
  return word(
      memref::ExtractAlignedPointerAsIndexOp::create(code.b, code.loc, memref));
}

Value WarpgroupCode::pointer(Value address, unsigned space) {
  auto type = LLVM::LLVMPointerType::get(code.b.getContext(), 3);
  Value shared = LLVM::IntToPtrOp::create(code.b, code.loc, type, address);
  if (space == 3)
    return shared;
  return LLVM::AddrSpaceCastOp::create(
      code.b, code.loc, LLVM::LLVMPointerType::get(code.b.getContext(), space),
      shared);
}

Value WarpgroupCode::group() {
  Value group = code.div(code.thread(), warpgroupSize);
  return code.widenIndex(code.shuffleFrom(code.narrow(group), code.index(0)));
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

Value WarpgroupCode::barrierAt(Value first, Value number) {
  return pointer(code.add(first, code.mul(word(number), barrierBytes)));
}

void WarpgroupCode::initialize(Value barrier, int64_t arrivals) {
  NVVM::MBarrierInitOp::create(code.b, code.loc, barrier, bits(arrivals),
                               Value());
}

void WarpgroupCode::fenceInitialized() {
  NVVM::FenceMbarrierInitOp::create(code.b, code.loc);
}

void WarpgroupCode::wait(Value barrier, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(code.b, code.loc, barrier, parity,
                                        bits(patience));
}

void WarpgroupCode::arrive(Value barrier) {
  NVVM::MBarrierArriveOp::create(code.b, code.loc, code.b.getI64Type(), barrier,
                                 Value());
}

void WarpgroupCode::expect(Value barrier, int64_t bytes) {
  NVVM::MBarrierArriveExpectTxOp::create(
      code.b, code.loc, code.b.getI64Type(), barrier, bits(bytes),
      NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void WarpgroupCode::prefetch(Value map) {
  NVVM::PrefetchOp::create(
      code.b, code.loc, NVVM::PrefetchCacheLevelAttr(),
      NVVM::CacheEvictionPriorityAttr(), map, /*predicate=*/Value(),
      /*tensormap=*/code.b.getUnitAttr(), /*uniform=*/UnitAttr(),
      /*in_param_space=*/UnitAttr());
}

void WarpgroupCode::copy(Value map, ArrayRef<Value> place, Value to,
                         Value barrier) {
  Values at;
  for (Value one : place)
    at.push_back(code.narrow(one));
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      code.b, code.loc, pointer(to, 7), map, at, barrier,
      /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
      /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
      /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value WarpgroupCode::descriptor(Value address, int64_t leading) {
  // PTX ISA, "Matrix Descriptor Format": 14 bits each of the address, and of
  // the distances, in units of 16 bytes; the swizzle of 128 bytes is 1.
  int64_t fields =
      leading >> 4 << 16 | (tileGroupBytes >> 4) << 32 | int64_t(1) << 62;
  Value low = arith::AndIOp::create(code.b, code.loc, address,
                                    code.like(address, 0x3ffff));
  low = arith::ShRUIOp::create(code.b, code.loc, low, code.like(low, 4));
  return arith::OrIOp::create(code.b, code.loc, low, code.like(low, fields));
}

/// The type of so many registers.
static Type structOf(OpBuilder &b, ArrayRef<Type> types) {
  return LLVM::LLVMStructType::getLiteral(b.getContext(), types);
}

Value WarpgroupCode::noSums(int64_t columns) {
  SmallVector<Type> types(static_cast<size_t>(columns / 2),
                          code.b.getF32Type());
  return LLVM::UndefOp::create(code.b, code.loc, structOf(code.b, types));
}

Value WarpgroupCode::sumsOf(ValueRange numbers) {
  Value sums = noSums(2 * static_cast<int64_t>(numbers.size()));
  for (auto [i, x] : llvm::enumerate(numbers))
    sums = LLVM::InsertValueOp::create(code.b, code.loc, sums, x,
                                       static_cast<int64_t>(i));
  return sums;
}

WarpgroupCode::Values WarpgroupCode::numbersOf(Value sums) {
  size_t count = cast<LLVM::LLVMStructType>(sums.getType()).getBody().size();
  Values numbers;
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(LLVM::ExtractValueOp::create(code.b, code.loc, sums,
                                                   static_cast<int64_t>(i)));
  return numbers;
}

/// "=f,=r" and "0,1" of registers that are read and written.
static std::pair<std::string, std::string> tied(ValueRange registers) {
  std::string written, read;
  for (auto [i, x] : llvm::enumerate(registers)) {
    written +=
        std::string(i ? "," : "") + (isa<FloatType>(x.getType()) ? "=f" : "=r");
    read += (i ? "," : "") + std::to_string(i);
  }
  return {written, read};
}

Value WarpgroupCode::multiply(Type element, ValueRange a, Value b, bool turned,
                              Value sums) {
  Values operands = numbersOf(sums);
  size_t count = operands.size();
  auto [written, read] = tied(operands);
  auto name = [](size_t number) { return "$" + std::to_string(number); };
  std::string results, type = element.isF16() ? "f16" : "bf16";
  for (size_t i = 0; i < count; ++i)
    results += (i ? ", " : "") + name(i);
  size_t next = 2 * count;
  std::string factors, constraints = written + "," + read;
  for (Value x : a) {
    factors += (factors.empty() ? "{" : ", ") + name(next++);
    constraints += ",r";
    operands.push_back(x);
  }
  factors += "}, " + name(next++);
  operands.push_back(b);
  operands.append({bits(1), bits(1), bits(1), bits(turned ? 1 : 0)});
  constraints += ",l,n,n,n,n";
  std::string text = "{\n.reg .pred p;\nsetp.ne.b32 p, " + name(next) +
                     ", 0;\nwgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(2 * count) + "k16.f32." + type + "." +
                     type + " {" + results + "}, " + factors + ", p, " +
                     name(next + 1) + ", " + name(next + 2) + ", " +
                     name(next + 3) + ";\n}\n";
  return LLVM::InlineAsmOp::create(
             code.b, code.loc, sums.getType(), operands, text, constraints,
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

Value WarpgroupCode::multiply(Type element, Value a, Value b, bool turned,
                              Value sums, bool adds) {
  size_t count = cast<LLVM::LLVMStructType>(sums.getType()).getBody().size();
  NVVM::WGMMATypes type =
      element.isF16() ? NVVM::WGMMATypes::f16 : NVVM::WGMMATypes::bf16;
  auto shape = NVVM::MMAShapeAttr::get(code.b.getContext(), warpgroupRows,
                                       static_cast<int>(2 * count), /*k=*/16);
  return NVVM::WgmmaMmaAsyncOp::create(
      code.b, code.loc, sums.getType(), sums, a, b, shape, type, type,
      NVVM::WGMMATypes::f32,
      adds ? NVVM::WGMMAScaleOut::one : NVVM::WGMMAScaleOut::zero,
      NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row,
      turned ? NVVM::MMALayout::row : NVVM::MMALayout::col,
      NVVM::MMAIntOverflowAttr());
}

WarpgroupCode::Values WarpgroupCode::pinned(const Twine &instruction,
                                            ValueRange registers) {
  SmallVector<Type> types(registers.getTypes());
  auto [written, read] = tied(registers);
  Value all = LLVM::InlineAsmOp::create(
                  code.b, code.loc, structOf(code.b, types), registers,
                  instruction.str(), written + "," + read,
                  /*has_side_effects=*/true, /*is_align_stack=*/false,
                  LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
                  .getRes();
  return numbersOf(all);
}

WarpgroupCode::Values WarpgroupCode::fence(ValueRange registers) {
  if (!registers.empty())
    return pinned("wgmma.fence.sync.aligned;", registers);
  NVVM::WgmmaFenceAlignedOp::create(code.b, code.loc);
  return {};
}

void WarpgroupCode::commit() {
  NVVM::WgmmaGroupSyncAlignedOp::create(code.b, code.loc);
}

WarpgroupCode::Values WarpgroupCode::wait(int64_t groups,
                                          ValueRange registers) {
  if (!registers.empty())
    return pinned("wgmma.wait_group.sync.aligned " + Twine(groups) + ";",
                  registers);
  NVVM::WgmmaWaitGroupSyncOp::create(code.b, code.loc, groups);
  return {};
}
