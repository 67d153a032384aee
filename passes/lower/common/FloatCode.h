//===- FloatCode.h - arithmetic on f32 and its bits -----------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_FLOATCODE_H
#define TANDEM_PASSES_LOWER_COMMON_FLOATCODE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace tandem::lower {

/// Writes arithmetic on f32, element by element where `like` is a vector.
class FloatCode {
public:
  FloatCode(mlir::OpBuilder &b, mlir::Location loc, mlir::Type like)
      : b(b), loc(loc), shape(llvm::dyn_cast<mlir::VectorType>(like)) {}

  mlir::Value number(double value) {
    return constant(b.getF32FloatAttr(static_cast<float>(value)));
  }
  mlir::Value integer(int32_t value) {
    return constant(b.getI32IntegerAttr(value));
  }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) {
    return mlir::math::FmaOp::create(b, loc, x, y, z);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulFOp::create(b, loc, x, y);
  }
  /// An intrinsic of LLVM, whose result is of the first operand's type.
  mlir::Value call(llvm::StringRef intrinsic, mlir::ValueRange operands,
                   mlir::LLVM::FastmathFlags flags = {}) {
    auto op = mlir::LLVM::CallIntrinsicOp::create(
        b, loc, operands[0].getType(), b.getStringAttr(intrinsic), operands);
    op.setFastmathFlags(flags);
    return op.getResult(0);
  }
  mlir::Value round(mlir::Value x) {
    return mlir::math::RoundEvenOp::create(b, loc, x);
  }
  mlir::Value select(mlir::arith::CmpFPredicate predicate, mlir::Value x,
                     mlir::Value y, mlir::Value yes, mlir::Value no) {
    mlir::Value holds = mlir::arith::CmpFOp::create(b, loc, predicate, x, y);
    return mlir::arith::SelectOp::create(b, loc, holds, yes, no);
  }
  mlir::Value toInteger(mlir::Value x) {
    return mlir::arith::FPToSIOp::create(b, loc, typeOf(b.getI32Type()), x);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, loc, x, y);
  }
  mlir::Value select(mlir::arith::CmpIPredicate predicate, mlir::Value x,
                     mlir::Value y, mlir::Value yes, mlir::Value no) {
    mlir::Value holds = mlir::arith::CmpIOp::create(b, loc, predicate, x, y);
    return mlir::arith::SelectOp::create(b, loc, holds, yes, no);
  }
  mlir::Value addFloat(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddFOp::create(b, loc, x, y);
  }
  mlir::Value subFloat(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubFOp::create(b, loc, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivFOp::create(b, loc, x, y);
  }
  mlir::Value neg(mlir::Value x) {
    return mlir::arith::NegFOp::create(b, loc, x);
  }
  mlir::Value abs(mlir::Value x) {
    return mlir::math::AbsFOp::create(b, loc, x);
  }
  mlir::Value withSign(mlir::Value x, mlir::Value sign) {
    return mlir::math::CopySignOp::create(b, loc, x, sign);
  }
  /// sum * x + c for each coefficient c but the first, with which sum begins.
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<double> coefficients) {
    mlir::Value sum = number(coefficients[0]);
    for (double c : coefficients.drop_front())
      sum = fma(sum, x, number(c));
    return sum;
  }
  mlir::Value toFloat(mlir::Value x) {
    return mlir::arith::SIToFPOp::create(b, loc, typeOf(b.getF32Type()), x);
  }
  mlir::Value both(mlir::Value x, int32_t mask) {
    return mlir::arith::AndIOp::create(b, loc, x, integer(mask));
  }
  mlir::Value either(mlir::Value x, mlir::Value y) {
    return mlir::arith::OrIOp::create(b, loc, x, y);
  }
  mlir::Value left(mlir::Value x, int32_t bits) {
    return mlir::arith::ShLIOp::create(b, loc, x, integer(bits));
  }
  mlir::Value right(mlir::Value x, int32_t bits) {
    return mlir::arith::ShRUIOp::create(b, loc, x, integer(bits));
  }
  mlir::Value bitsOf(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc, typeOf(b.getI32Type()), x);
  }
  mlir::Value ofBits(mlir::Value x) {
    return mlir::arith::BitcastOp::create(b, loc, typeOf(b.getF32Type()), x);
  }
  /// The 16 bits of an f16 as an i32, and back.
  mlir::Value widened(mlir::Value half) {
    mlir::Value bits =
        mlir::arith::BitcastOp::create(b, loc, typeOf(b.getI16Type()), half);
    return mlir::arith::ExtUIOp::create(b, loc, typeOf(b.getI32Type()), bits);
  }
  mlir::Value narrowed(mlir::Value bits) {
    mlir::Value low =
        mlir::arith::TruncIOp::create(b, loc, typeOf(b.getI16Type()), bits);
    return mlir::arith::BitcastOp::create(b, loc, typeOf(b.getF16Type()), low);
  }

private:
  mlir::Type typeOf(mlir::Type element) {
    return shape ? mlir::Type(shape.clone(element)) : element;
  }
  mlir::Value constant(mlir::TypedAttr value) {
    if (shape)
      value = mlir::DenseElementsAttr::get(
          shape.clone(value.getType()), llvm::ArrayRef<mlir::Attribute>(value));
    return mlir::arith::ConstantOp::create(b, loc, value);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::VectorType shape;
};

} // namespace tandem::lower

#endif
