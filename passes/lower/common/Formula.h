//===- Formula.h - arithmetic on scalars with the usual signs
//--------------===//
//
// A scalar value under construction: f64, i64, i32 or i1. Numbers of C++ beside
// a formula are constants of its type. Nothing is contracted or reordered, so
// that what is written is what is rounded.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_FORMULA_H
#define TANDEM_PASSES_LOWER_COMMON_FORMULA_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace tandem::lower {

class Formula {
public:
  Formula(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value)
      : b(&b), loc(loc), value(value) {}

  operator mlir::Value() const { return value; }

  /// A constant of this type.
  Formula like(double x) const {
    return wrap(
        mlir::arith::ConstantOp::create(*b, loc, b->getFloatAttr(type(), x)));
  }
  Formula bits(uint64_t x) const {
    llvm::APInt word(type().getIntOrFloatBitWidth(), x, false, true);
    return wrap(mlir::arith::ConstantOp::create(
        *b, loc, b->getIntegerAttr(type(), word)));
  }

  // Floating point.
  Formula operator-() const { return make<mlir::arith::NegFOp>(value); }
  Formula operator+(const Formula &y) const {
    return make<mlir::arith::AddFOp>(value, y.value);
  }
  Formula operator-(const Formula &y) const {
    return make<mlir::arith::SubFOp>(value, y.value);
  }
  Formula operator*(const Formula &y) const {
    return make<mlir::arith::MulFOp>(value, y.value);
  }
  Formula operator/(const Formula &y) const {
    return make<mlir::arith::DivFOp>(value, y.value);
  }
  Formula operator+(double y) const { return *this + like(y); }
  Formula operator-(double y) const { return *this - like(y); }
  Formula operator*(double y) const { return *this * like(y); }
  /// this * y + z, rounded once.
  Formula fma(const Formula &y, const Formula &z) const {
    return make<mlir::math::FmaOp>(value, y.value, z.value);
  }
  Formula fma(double y, const Formula &z) const { return fma(like(y), z); }
  /// The polynomial with these coefficients, that of the highest power first.
  Formula polynomial(llvm::ArrayRef<double> coefficients) const {
    Formula sum = like(coefficients[0]);
    for (double c : coefficients.drop_front())
      sum = sum.fma(*this, like(c));
    return sum;
  }
  Formula abs() const { return make<mlir::math::AbsFOp>(value); }
  Formula withSign(const Formula &sign) const {
    return make<mlir::math::CopySignOp>(value, sign.value);
  }
  Formula sqrt() const { return make<mlir::math::SqrtOp>(value); }
  Formula round() const { return make<mlir::math::RoundEvenOp>(value); }

  // i1; a comparison with NaN does not hold.
  Formula operator<(double y) const { return compare(P::OLT, like(y)); }
  Formula operator>(double y) const { return compare(P::OGT, like(y)); }
  Formula operator>=(double y) const { return compare(P::OGE, like(y)); }
  Formula operator==(double y) const { return compare(P::OEQ, like(y)); }
  Formula operator==(const Formula &y) const { return compare(P::OEQ, y); }
  Formula isNaN() const { return compare(P::UNO, *this); }
  Formula select(const Formula &yes, const Formula &no) const {
    return make<mlir::arith::SelectOp>(value, yes.value, no.value);
  }
  Formula select(const Formula &yes, double no) const {
    return select(yes, yes.like(no));
  }
  Formula select(double yes, const Formula &no) const {
    return select(no.like(yes), no);
  }

  // Integers and bits.
  Formula plus(const Formula &y) const {
    return make<mlir::arith::AddIOp>(value, y.value);
  }
  Formula plus(int64_t y) const { return plus(bits(y)); }
  Formula minus(const Formula &y) const {
    return make<mlir::arith::SubIOp>(value, y.value);
  }
  Formula times(const Formula &y) const {
    return make<mlir::arith::MulIOp>(value, y.value);
  }
  /// The upper half of the product.
  Formula timesHigh(const Formula &y) const {
    return wrap(mlir::arith::MulUIExtendedOp::create(*b, loc, value, y.value)
                    .getHigh());
  }
  /// The rest of a division of numbers of at least 0.
  Formula rest(const Formula &y) const {
    return make<mlir::arith::RemUIOp>(value, y.value);
  }
  Formula operator&(const Formula &y) const {
    return make<mlir::arith::AndIOp>(value, y.value);
  }
  Formula operator&(uint64_t y) const { return *this & bits(y); }
  Formula operator|(const Formula &y) const {
    return make<mlir::arith::OrIOp>(value, y.value);
  }
  Formula operator|(uint64_t y) const { return *this | bits(y); }
  Formula operator^(const Formula &y) const {
    return make<mlir::arith::XOrIOp>(value, y.value);
  }
  Formula operator<<(const Formula &n) const {
    return make<mlir::arith::ShLIOp>(value, n.value);
  }
  Formula operator<<(uint64_t n) const { return *this << bits(n); }
  /// Zeros come in.
  Formula operator>>(const Formula &n) const {
    return make<mlir::arith::ShRUIOp>(value, n.value);
  }
  Formula operator>>(uint64_t n) const { return *this >> bits(n); }
  /// The sign comes in.
  Formula shiftedSigned(uint64_t n) const {
    return make<mlir::arith::ShRSIOp>(value, bits(n).value);
  }
  Formula leadingZeros() const {
    return make<mlir::math::CountLeadingZerosOp>(value);
  }
  Formula is(uint64_t y) const {
    return wrap(mlir::arith::CmpIOp::create(
        *b, loc, mlir::arith::CmpIPredicate::eq, value, bits(y)));
  }
  /// Both of at least 0.
  Formula isBelow(const Formula &y) const {
    return wrap(mlir::arith::CmpIOp::create(
        *b, loc, mlir::arith::CmpIPredicate::ult, value, y.value));
  }

  // Other types.
  Formula asBits() const { return to<mlir::arith::BitcastOp>(b->getI64Type()); }
  Formula asNumber() const {
    return to<mlir::arith::BitcastOp>(b->getF64Type());
  }
  Formula toInteger() const {
    return to<mlir::arith::FPToSIOp>(b->getI64Type());
  }
  Formula toNumber() const {
    return to<mlir::arith::SIToFPOp>(b->getF64Type());
  }
  Formula widened() const { return to<mlir::arith::ExtFOp>(b->getF64Type()); }
  Formula narrowed() const {
    return to<mlir::arith::TruncFOp>(b->getF32Type());
  }

  /// `yes()` where this i1 holds, else `no`: a branch, so that `yes` costs only
  /// where it is needed.
  Formula branch(llvm::function_ref<Formula()> yes, const Formula &no) const {
    auto op = mlir::scf::IfOp::create(*b, loc, mlir::TypeRange{no.type()},
                                      value, /*withElse=*/true);
    mlir::OpBuilder::InsertionGuard guard(*b);
    b->setInsertionPointToStart(&op.getThenRegion().front());
    mlir::scf::YieldOp::create(*b, loc, yes().value);
    b->setInsertionPointToStart(&op.getElseRegion().front());
    mlir::scf::YieldOp::create(*b, loc, no.value);
    return wrap(op.getResult(0));
  }

  /// for (at = 0; at < this; at += step) carried = body(at, carried)
  Formula
  loop(int64_t step, const Formula &carried,
       llvm::function_ref<Formula(const Formula &at, const Formula &carried)>
           body) const {
    auto op = mlir::scf::ForOp::create(
        *b, loc, bits(0).value, value, bits(step).value, carried.value,
        [&](mlir::OpBuilder &, mlir::Location at, mlir::Value i,
            mlir::ValueRange sum) {
          mlir::scf::YieldOp::create(*b, at, body(wrap(i), wrap(sum[0])).value);
        });
    return wrap(op.getResult(0));
  }

private:
  using P = mlir::arith::CmpFPredicate;

  mlir::Type type() const { return value.getType(); }
  Formula wrap(mlir::Value x) const { return Formula(*b, loc, x); }
  template <typename Op, typename... Args> Formula make(Args... args) const {
    return wrap(Op::create(*b, loc, args...));
  }
  template <typename Op> Formula to(mlir::Type type) const {
    return wrap(Op::create(*b, loc, type, value));
  }
  Formula compare(P predicate, const Formula &y) const {
    return wrap(
        mlir::arith::CmpFOp::create(*b, loc, predicate, value, y.value));
  }

  mlir::OpBuilder *b;
  mlir::Location loc;
  mlir::Value value;
};

} // namespace tandem::lower

#endif
