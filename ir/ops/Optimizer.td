//===- Optimizer.td - parameter updates ------------------------------------===//
//
// Each op gives the new value of a parameter and of the optimizer's variables;
// the formulas are PyTorch's. Everything is computed in f32 (f64 for an f64
// parameter) and rounded once; factors that depend on the step alone in f64.
// `lr` and `step` are scalars, so that a schedule needs no new compilation.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_OPTIMIZER
#define TANDEM_IR_OPS_OPTIMIZER

include "ir/OpBase.td"
include "ir/Attributes.td"

def Tandem_Scalar : Tandem_Tensor<[F32], "32-bit floats">;

class OptimizerOp<string mnemonic, dag operands, dag attributes, dag values>
    : CompositeOp<mnemonic, [InferTypeOpAdaptor]> {
  let arguments = !con(operands, attributes);
  let results = values;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def SgdOp : OptimizerOp<"sgd",
    (ins FloatTensor:$param, FloatTensor:$grad, Tandem_Scalar:$lr),
    (ins Tandem_Default<F64Attr, "0.0">:$weight_decay),
    (outs FloatTensor:$new_param)> {
  let summary = "Stochastic gradient descent";
  let description = [{
    `g = grad + weight_decay * param; new_param = param - lr * g`.
  }];
}

def MomentumOp : OptimizerOp<"momentum",
    (ins FloatTensor:$param, FloatTensor:$grad, FloatTensor:$velocity, Tandem_Scalar:$lr),
    (ins Tandem_Default<F64Attr, "0.9">:$momentum, Tandem_Default<F64Attr, "0.0">:$weight_decay,
         Tandem_Default<F64Attr, "0.0">:$dampening, UnitAttr:$nesterov),
    (outs FloatTensor:$new_param, FloatTensor:$new_velocity)> {
  let summary = "Stochastic gradient descent with momentum";
  let description = [{
    `g = grad + weight_decay * param; new_velocity = momentum * velocity + (1 -
    dampening) * g; new_param = param - lr * new_velocity`, with `nesterov`
    `param - lr * (g + momentum * new_velocity)`. The first velocity is zero;
    PyTorch leaves dampening out of its first step.
  }];
}

class AdamLikeOp<string mnemonic, string decay> : OptimizerOp<mnemonic,
    (ins FloatTensor:$param, FloatTensor:$grad, FloatTensor:$m, FloatTensor:$v, Tandem_Scalar:$step, Tandem_Scalar:$lr),
    (ins Tandem_Default<F64Attr, "0.9">:$beta1, Tandem_Default<F64Attr, "0.999">:$beta2,
         Tandem_Default<F64Attr, "1e-8">:$epsilon, Tandem_Default<F64Attr, decay>:$weight_decay),
    (outs FloatTensor:$new_param, FloatTensor:$new_m, FloatTensor:$new_v)>;

def AdamOp : AdamLikeOp<"adam", "0.0"> {
  let summary = "Adam, with weight decay added to the gradient";
  let description = [{
    `g = grad + weight_decay * param; new_m = m + (1 - beta1) * (g - m); new_v =
    beta2 * v + (1 - beta2) * g * g; new_param = param - lr / (1 - beta1^step) *
    new_m / (sqrt(new_v) / sqrt(1 - beta2^step) + epsilon)`. `step` counts from 1.
  }];
}

def AdamWOp : AdamLikeOp<"adamw", "0.01"> {
  let summary = "Adam, with weight decay taken from the parameter";
  let description = [{
    As adam, with `g = grad` and `param * (1 - lr * weight_decay)` in the place
    of `param`.
  }];
}

#endif
