//===- Elementwise.td - pointwise ops --------------------------------------===//
//
// Operands and result have one shape; broadcasting is an op of its own. Each
// record holds the gradient per operand, the scalar code (ops of arith and
// math on `x[i]`, built by the functions of ir/ops/Scalar.h), and the reference
// in double. ir/tablegen makes of the records what calls the ops by their names:
// functions of formulas (ir/Expr.h), of traced programs
// (compiler/trace/Functions.h), and operators of ONNX.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_ELEMENTWISE
#define TANDEM_IR_OPS_ELEMENTWISE

include "ir/OpBase.td"
include "ir/Attributes.td"

/// What ir/tablegen reads of a UnaryOp or a BinaryOp.
class PointwiseNames<string scalar> {
  /// Formulas and traced programs have a function of the op's name.
  bit hasFunction = true;
  /// The operator of ONNX that is this op, if there is one.
  string onnx = "";
  string scalarCode = scalar;
}

/// One operand, result of its type.
class UnaryOp<string mnemonic, string gradient, string scalar, string reference,
              TypeConstraint type = FloatTensor, list<Trait> traits = []>
    : PointwiseOp<mnemonic, !listconcat(traits, [SameOperandsAndResultType],
        !if(!empty(gradient), [NotDifferentiable],
            [DeclareOpInterfaceMethods<DifferentiableOpInterface>]))>, PointwiseNames<scalar> {
  let arguments = (ins type:$x);
  let results = (outs type:$y);
  let assemblyFormat = "$x attr-dict `:` type($y)";
  let description = "`y = " # !subst("x[0]", "x", !subst("std::", "", reference)) # "`, element by element."
    # !if(!empty(gradient), "", PullbackBody<[gradient]>.doc);
  let extraClassDefinition = pointwiseMethods
    # PointwiseBody<scalar, reference>.text
    # !if(!empty(gradient), "", PullbackBody<[gradient]>.text);
}

/// Two operands of one type, result of that type.
class BinaryOp<string mnemonic, list<string> gradients, string scalar,
               string reference, TypeConstraint type = NumericTensor,
               list<Trait> traits = []>
    : PointwiseOp<mnemonic, !listconcat(traits, [SameOperandsAndResultType],
        !if(!empty(gradients), [NotDifferentiable],
            [DeclareOpInterfaceMethods<DifferentiableOpInterface>]))>, PointwiseNames<scalar> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$y);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($y)";
  let description = "`y = " # !subst("x[0]", "lhs", !subst("x[1]", "rhs", !subst("std::", "", reference))) # "`, element by element."
    # !if(!empty(gradients), "", PullbackBody<gradients>.doc);
  let extraClassDefinition = pointwiseMethods
    # PointwiseBody<scalar, reference>.text
    # !if(!empty(gradients), "", PullbackBody<gradients>.text);
}

// Smooth functions of one number.
def NegOp : UnaryOp<"neg", "-p.dy()", "scalar::neg(b, loc, x[0])", "-x[0]", NumericTensor> { let hasFolder = 1; let hasFunction = false; let onnx = "Neg"; }
def AbsOp : UnaryOp<"abs", "p.dy() * select(compare(ComparePredicate::gt, p.x(), p.x().like(0.0)), p.x().like(1.0), select(compare(ComparePredicate::lt, p.x(), p.x().like(0.0)), p.x().like(-1.0), p.x().like(0.0)))", "scalar::abs(b, loc, x[0])", "std::abs(x[0])", NumericTensor> { let onnx = "Abs"; }
def ExpOp : UnaryOp<"exp", "p.dy() * p.y()", "scalar::exp(b, loc, x[0])", "std::exp(x[0])", FloatTensor, [AutocastFull]> { let onnx = "Exp"; }
def LogOp : UnaryOp<"log", "p.dy() / p.x()", "scalar::log(b, loc, x[0])", "std::log(x[0])", FloatTensor, [AutocastFull]> { let onnx = "Log"; }
def Log1pOp : UnaryOp<"log1p", "p.dy() / (p.x() + 1.0)", "scalar::log1p(b, loc, x[0])", "std::log1p(x[0])", FloatTensor, [AutocastFull]>;
def SqrtOp : UnaryOp<"sqrt", "p.dy() * 0.5 / p.y()", "scalar::sqrt(b, loc, x[0])", "std::sqrt(x[0])"> { let onnx = "Sqrt"; }
def RsqrtOp : UnaryOp<"rsqrt", "p.dy() * -0.5 * p.y() * p.y() * p.y()", "scalar::rsqrt(b, loc, x[0])", "1.0 / std::sqrt(x[0])", FloatTensor, [AutocastFull]>;
def SinOp : UnaryOp<"sin", "p.dy() * cos(p.x())", "scalar::sin(b, loc, x[0])", "std::sin(x[0])"> { let onnx = "Sin"; }
def CosOp : UnaryOp<"cos", "-p.dy() * sin(p.x())", "scalar::cos(b, loc, x[0])", "std::cos(x[0])"> { let onnx = "Cos"; }
def TanhOp : UnaryOp<"tanh", "p.dy() * (1.0 - p.y() * p.y())", "scalar::tanh(b, loc, x[0])", "std::tanh(x[0])"> { let onnx = "Tanh"; }
def SigmoidOp : UnaryOp<"sigmoid", "p.dy() * p.y() * (1.0 - p.y())", "scalar::sigmoid(b, loc, x[0])", "1.0 / (1.0 + std::exp(-x[0]))"> { let onnx = "Sigmoid"; }
// 2/sqrt(pi) = 1.12837916709551257390
def ErfOp : UnaryOp<"erf", "p.dy() * 1.12837916709551257390 * exp(-p.x() * p.x())", "scalar::erf(b, loc, x[0])", "std::erf(x[0])"> { let onnx = "Erf"; }
// Not dy (y + 1), which is 0 where y rounds to -1.
def Expm1Op : UnaryOp<"expm1", "p.dy() * exp(p.x())", "scalar::expm1(b, loc, x[0])", "std::expm1(x[0])", FloatTensor, [AutocastFull]>;
def TanOp : UnaryOp<"tan", "p.dy() * (p.y() * p.y() + 1.0)", "scalar::tan(b, loc, x[0])", "std::tan(x[0])", FloatTensor, [AutocastFull]> { let onnx = "Tan"; }
def AsinOp : UnaryOp<"asin", "p.dy() * rsqrt(1.0 - p.x() * p.x())", "scalar::asin(b, loc, x[0])", "std::asin(x[0])", FloatTensor, [AutocastFull]> { let onnx = "Asin"; }
def AcosOp : UnaryOp<"acos", "-p.dy() * rsqrt(1.0 - p.x() * p.x())", "scalar::acos(b, loc, x[0])", "std::acos(x[0])", FloatTensor, [AutocastFull]> { let onnx = "Acos"; }
def AtanOp : UnaryOp<"atan", "p.dy() / (p.x() * p.x() + 1.0)", "scalar::atan(b, loc, x[0])", "std::atan(x[0])"> { let onnx = "Atan"; }
def SinhOp : UnaryOp<"sinh", "p.dy() * cosh(p.x())", "scalar::sinh(b, loc, x[0])", "std::sinh(x[0])", FloatTensor, [AutocastFull]> { let onnx = "Sinh"; }
def CoshOp : UnaryOp<"cosh", "p.dy() * sinh(p.x())", "scalar::cosh(b, loc, x[0])", "std::cosh(x[0])", FloatTensor, [AutocastFull]> { let onnx = "Cosh"; }

// Kinks. At 0 relu's gradient is 0 and so is abs's: PyTorch's choice.
def ReluOp : UnaryOp<"relu", "select(compare(ComparePredicate::gt, p.y(), p.y().like(0.0)), p.dy(), p.dy().like(0.0))",
    "scalar::relu(b, loc, x[0])", "x[0] > 0 || std::isnan(x[0]) ? x[0] : 0.0", NumericTensor> { let onnx = "Relu"; }

// Piecewise constant.
def SignOp : UnaryOp<"sign", "", "scalar::sign(b, loc, x[0])", "x[0] > 0 ? 1.0 : x[0] < 0 ? -1.0 : x[0] == 0 ? 0.0 : x[0]", NumericTensor> { let onnx = "Sign"; }
def FloorOp : UnaryOp<"floor", "", "scalar::floor(b, loc, x[0])", "std::floor(x[0])"> { let onnx = "Floor"; }
def CeilOp : UnaryOp<"ceil", "", "scalar::ceil(b, loc, x[0])", "std::ceil(x[0])"> { let onnx = "Ceil"; }
def RoundOp : UnaryOp<"round", "", "scalar::round(b, loc, x[0])", "std::nearbyint(x[0])"> {
  let onnx = "Round";
  let summary = "To the nearest integer, halves to even";
}
def TruncOp : UnaryOp<"trunc", "", "scalar::trunc(b, loc, x[0])", "std::trunc(x[0])"> {
  let summary = "To the nearest integer toward zero";
}
def LogicalNotOp : UnaryOp<"logical_not", "", "scalar::logicalNot(b, loc, x[0])", "x[0] == 0 ? 1.0 : 0.0", BoolTensor> { let hasFolder = 1; }

// Two numbers.
def AddOp : BinaryOp<"add", ["p.dy()", "p.dy()"], "scalar::add(b, loc, x[0], x[1])", "x[0] + x[1]", NumericTensor, [Commutative]> { let hasFolder = 1; let hasFunction = false; let onnx = "Add"; }
def SubOp : BinaryOp<"sub", ["p.dy()", "-p.dy()"], "scalar::sub(b, loc, x[0], x[1])", "x[0] - x[1]"> { let hasFolder = 1; let hasFunction = false; let onnx = "Sub"; }
def MulOp : BinaryOp<"mul", ["p.dy() * p.rhs()", "p.dy() * p.x()"], "scalar::mul(b, loc, x[0], x[1])", "x[0] * x[1]", NumericTensor, [Commutative]> { let hasFolder = 1; let hasFunction = false; let onnx = "Mul"; }
def DivOp : BinaryOp<"div", ["p.dy() / p.rhs()", "-p.dy() * p.y() / p.rhs()"], "scalar::div(b, loc, x[0], x[1])",
    "reference::quotient(getType(), x[0], x[1])"> {
  let hasFunction = false;
  let onnx = "Div";
  let summary = "The quotient; of integers as idiv";
  let description = "`y = lhs / rhs`, element by element." # PullbackBody<["p.dy() / p.rhs()", "-p.dy() * p.y() / p.rhs()"]>.doc;
  let hasFolder = 1;
}
// 0 where PyTorch's are: for x^0, and for the exponent of 0^y with y >= 0.
def PowGradients {
  list<string> both = [
    "select(compare(ComparePredicate::eq, p.rhs(), p.rhs().like(0.0)), p.dy().like(0.0), p.dy() * p.rhs() * pow(p.x(), p.rhs() - 1.0))",
    "p.dy() * select(logicalAnd(compare(ComparePredicate::eq, p.x(), p.x().like(0.0)), compare(ComparePredicate::ge, p.rhs(), p.rhs().like(0.0))), p.y().like(0.0), p.y() * log(p.x()))"];
}
def PowOp : BinaryOp<"pow", PowGradients.both,
    "scalar::pow(b, loc, x[0], x[1])", "reference::power(getType(), x[0], x[1])", NumericTensor, [AutocastFull]> {
  let description = [{
    `y = pow(lhs, rhs)`, element by element. Of integers modulo 2^bits; with a negative
    exponent the power of 1 and -1 is theirs, any other is 0.
  }] # PullbackBody<PowGradients.both>.doc;
}
// 0 where both squares are 0: PyTorch masks the quotient, too.
def Atan2Gradients {
  defvar sum = "p.x() * p.x() + p.rhs() * p.rhs()";
  defvar square = "select(compare(ComparePredicate::eq, " # sum # ", p.x().like(0.0)), p.x().like(std::numeric_limits<double>::infinity()), " # sum # ")";
  list<string> both = ["p.dy() * p.rhs() / " # square, "-p.dy() * p.x() / " # square];
}
def Atan2Op : BinaryOp<"atan2", Atan2Gradients.both,
    "scalar::atan2(b, loc, x[0], x[1])", "std::atan2(x[0], x[1])", FloatTensor>;
def RemOp : BinaryOp<"rem", ["p.dy()", "-p.dy() * trunc(p.x() / p.rhs())"],
    "scalar::rem(b, loc, x[0], x[1])", "reference::remainder(getType(), x[0], x[1])"> {
  let summary = "What the quotient rounded toward zero leaves";
  let description = [{
    `y = lhs - trunc(lhs / rhs) * rhs`, exact, element by element: C's fmod, and PyTorch's;
    the sign is that of `lhs`. Of integers `lhs - idiv(lhs, rhs) * rhs`, so `lhs`
    where `rhs` is 0.
  }] # PullbackBody<["p.dy()", "-p.dy() * trunc(p.x() / p.rhs())"]>.doc;
}
def IdivOp : BinaryOp<"idiv", [], "scalar::div(b, loc, x[0], x[1])",
    "reference::quotient(getType(), x[0], x[1])", IntTensor> {
  let summary = "The quotient of integers, toward zero";
  let description = [{
    0 where `rhs` is 0. The one quotient that does not fit, of the least number by
    -1, is the least number.
  }];
  let hasFolder = 1;
}
// Ties, of infinities too: half to each operand; where one is NaN each has the whole gradient: as PyTorch.
class Extreme<string loses, string wins> {
  defvar tie = "select(compare(ComparePredicate::eq, p.x(), p.rhs()), p.dy() * 0.5, ";
  list<string> both = !foreach(predicate, [loses, wins],
    tie # "select(compare(ComparePredicate::" # predicate # ", p.x(), p.rhs()), p.dy().like(0.0), p.dy()))");
}
def MaximumOp : BinaryOp<"maximum", Extreme<"lt", "gt">.both,
    "scalar::maximum(b, loc, x[0], x[1])", "std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1]", NumericTensor, [Commutative]>;
def MinimumOp : BinaryOp<"minimum", Extreme<"gt", "lt">.both,
    "scalar::minimum(b, loc, x[0], x[1])", "std::isnan(x[0]) || x[0] < x[1] ? x[0] : x[1]", NumericTensor, [Commutative]>;
def LogicalAndOp : BinaryOp<"logical_and", [], "scalar::logicalAnd(b, loc, x[0], x[1])", "x[0] != 0 && x[1] != 0 ? 1.0 : 0.0", BoolTensor, [Commutative]>;
def LogicalOrOp : BinaryOp<"logical_or", [], "scalar::logicalOr(b, loc, x[0], x[1])", "x[0] != 0 || x[1] != 0 ? 1.0 : 0.0", BoolTensor, [Commutative]>;

// Bits. Bools are integers of one bit.
class BitOp<string mnemonic, string scalar, string word>
    : BinaryOp<mnemonic, [], "scalar::" # scalar # "(b, loc, x[0], x[1])",
               "reference::" # scalar # "(getType(), x[0], x[1])", BitTensor, [Commutative]> {
  let description = "`y = lhs " # word # " rhs`, bit by bit.";
}
def BitAndOp : BitOp<"bit_and", "bitAnd", "and">;
def BitOrOp : BitOp<"bit_or", "bitOr", "or">;
def BitXorOp : BitOp<"bit_xor", "bitXor", "xor">;
def BitNotOp : UnaryOp<"bit_not", "", "scalar::bitNot(b, loc, x[0])",
    "reference::bitNot(getType(), x[0])", BitTensor> {
  let description = "`y = not x`, bit by bit.";
}
def ShiftLeftOp : BinaryOp<"shift_left", [], "scalar::shiftLeft(b, loc, x[0], x[1])",
    "reference::shiftLeft(getType(), x[0], x[1])", IntTensor> {
  let summary = "Bits moved up, zeros come in";
  let description = [{
    `y = lhs * 2^rhs` modulo 2^bits. 0 where `rhs` is negative or at least the
    number of bits.
  }];
}
def ShiftRightOp : BinaryOp<"shift_right", [], "scalar::shiftRight(b, loc, x[0], x[1])",
    "reference::shiftRight(getType(), x[0], x[1])", IntTensor> {
  let summary = "Bits moved down, the sign comes in";
  let description = [{
    `y = floor(lhs / 2^rhs)`. Where `rhs` is negative or at least the number of
    bits, what is left is the sign: -1 or 0. Into unsigned integers zeros come in.
  }];
}

def CompareOp : PointwiseOp<"compare", [NotDifferentiable, SameTypeOperands, SameOperandsAndResultShape,
    InferTypeOpAdaptor]> {
  let summary = "Compares element by element";
  let description = "NaN compares unequal to everything, and is neither less nor greater.";
  let arguments = (ins ComparePredicateAttr:$predicate, AnyTensor_:$lhs, AnyTensor_:$rhs);
  let results = (outs BoolTensor:$y);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs)";
  let extraClassDefinition = pointwiseMethods;
}

def SelectOp : PointwiseOp<"select", [SameOperandsAndResultShape, AllTypesMatch<["lhs", "rhs", "y"]>,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "`condition ? lhs : rhs`, element by element";
  let arguments = (ins BoolTensor:$condition, AnyTensor_:$lhs, AnyTensor_:$rhs);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs attr-dict `:` type($condition) `,` type($y)";
  defvar gradients = ["", "select(p.in(0), p.dy(), p.dy().like(0.0))", "select(p.in(0), p.dy().like(0.0), p.dy())"];
  let description = PullbackBody<gradients>.doc;
  let hasFolder = 1;
  let extraClassDefinition = pointwiseMethods
    # PointwiseBody<"scalar::select(b, loc, x[0], x[1], x[2])", "x[0] != 0 ? x[1] : x[2]">.text
    # PullbackBody<gradients>.text;
}

def CastOp : PointwiseOp<"cast", [SameOperandsAndResultShape, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The same numbers with another element type";
  let description = [{
    Float to integer rounds toward zero; what is out of range becomes the nearest
    number of the type, NaN 0. Between integers it is modulo 2^bits. To bool is
    `x != 0`; bool counts as 0 and 1. Float to float rounds to the nearest, ties to
    even; beyond the largest f8E4M3FN, which has no infinity, is NaN. Between two
    float types of at least 16 bits the gradient is cast back; otherwise there is
    none.
  }];
  let arguments = (ins AnyTensor_:$x);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($y)";
  let hasFolder = 1;
  let extraClassDefinition = pointwiseMethods # PullbackBody<["p.dy().cast(p.x().type().getElementType())"]>.text;
}


//===----------------------------------------------------------------------===//
// Gradients that may be undefined, and writes that are hidden from them
//===----------------------------------------------------------------------===//

def PassGradOp : PointwiseOp<"pass_grad", [SameOperandsAndResultType,
    DeclareOpInterfaceMethods<DifferentiableOpInterface, ["numGradientOperands"]>]> {
  let summary = "The value of one tensor with the gradient of another";
  let description = [{
    `y = fresh`, and the whole gradient goes to `old`: what a write in a no-grad
    region or through `detach` does to a value that gradients flow through.
  }] # PullbackBody<["p.dy()", ""]>.doc;
  let arguments = (ins AnyTensor_:$old, AnyTensor_:$fresh);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$old `,` $fresh attr-dict `:` type($y)";
  let extraClassDefinition = pointwiseMethods # PointwiseBody<"x[1]", "x[1]">.text
    # PullbackBody<["p.dy()", ""]>.text
    # "unsigned $cppClass::numGradientOperands() { return 1; }\n";
}

def AccumulateOp : BinaryOp<"accumulate", ["p.dy()", "p.dy()"], "scalar::add(b, loc, x[0], x[1])", "x[0] + x[1]", FloatTensor> {
  let hasFunction = false;
  let summary = "The sum of two gradients, each of which may be undefined";
}

def OrZeroOp : PointwiseOp<"or_zero", [SameOperandsAndResultType,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "A gradient, or zeros where it is undefined";
  let description = [{
    `needs` says when the result is defined: a list of lists of cotangents, each
    of which must have a defined one.
  }] # PullbackBody<["p.dy()"]>.doc;
  let arguments = (ins FloatTensor:$x, ArrayAttr:$needs);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$x `needs` $needs attr-dict `:` type($y)";
  let hasVerifier = 1;
  let extraClassDefinition = pointwiseMethods # PointwiseBody<"x[0]", "x[0]">.text
    # PullbackBody<["p.dy()"]>.text;
}

def IfDefinedOp : PointwiseOp<"if_defined", [SameOperandsAndResultType,
    DeclareOpInterfaceMethods<DifferentiableOpInterface, ["numGradientOperands"]>]> {
  let summary = "One tensor where cotangents are defined, another where not";
  let description = [{
    `fresh` where `when` holds (a list of lists of cotangents, each of which must
    have a defined one), else `old`: what the backward of a custom_vjp writes.
  }] # PullbackBody<["p.dy()", ""]>.doc;
  let arguments = (ins AnyTensor_:$fresh, AnyTensor_:$old, ArrayAttr:$when);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$fresh `else` $old `when` $when attr-dict `:` type($y)";
  let hasVerifier = 1;
  let extraClassDefinition = pointwiseMethods # PointwiseBody<"x[0]", "x[0]">.text
    # PullbackBody<["p.dy()", ""]>.text
    # "unsigned $cppClass::numGradientOperands() { return 1; }\n";
}

#endif
