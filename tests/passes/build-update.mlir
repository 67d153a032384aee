// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-build-update | FileCheck %s

// The params that have a gradient, their gradients and the optimizer's states;
// the new params and states. What params share is computed once.
// CHECK-LABEL: module @sgd
// CHECK: func.func @update(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<grad of "w">},
// CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<state "sgd.lr" {init = {kind = "constant", value = 5.000000e-01 : f64}}>})
// CHECK-SAME: -> (tensor<2xf32> {tandem.role = #tandem.role<update of "w">})
// CHECK: %[[R:.*]] = tandem.broadcast %[[LR]]
// CHECK: %[[D:.*]] = tandem.mul %[[R]], %[[G]]
// CHECK: %[[N:.*]] = tandem.sub %[[W]], %[[D]]
// CHECK: return %[[N]]
// CHECK-NOT: @step
module @sgd attributes {tandem.optimizer = "sgd:lr=0.5"} {
  func.func @forward(%w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}, %v: tensor<2xf32> {tandem.role = #tandem.role<param "v">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.mul %w, %v : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%v: tensor<2xf32> {tandem.role = #tandem.role<param "v">}, %dy: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "y">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}) {
    %g = tandem.mul %v, %dy : tensor<2xf32>
    return %g : tensor<2xf32>
  }
}

// -----

// Nobody asked for an optimizer, or there is no training.
// CHECK-LABEL: module @none
// CHECK-NOT: @update
module @none {
  func.func @forward() { return }
}

// -----

// CHECK-LABEL: module @inference
// CHECK-NOT: @update
module @inference attributes {tandem.optimizer = "sgd"} {
  func.func @evaluate() { return }
}

// -----

module @nothing attributes {tandem.optimizer = "sgd"} {
  // expected-error@+1 {{optimizer 'sgd' has nothing to do: no param has a gradient}}
  func.func @forward() { return }
}

// -----

// expected-error@+1 {{unknown optimizer 'tiger'; known are 'sgd', 'momentum', }}
module @unknown attributes {tandem.optimizer = "tiger"} {
  func.func @forward(%w: tensor<f32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<f32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<f32> {tandem.role = #tandem.role<grad of "w">}) {
    return %dy : tensor<f32>
  }
}

// -----

module @twice attributes {tandem.optimizer = "sgd"} {
  func.func @forward() { return }
  // expected-error@+1 {{expected no 'update' before an optimizer is made a program}}
  func.func @update() { return }
}

// -----

// A param has the name of a state.
module @names attributes {tandem.optimizer = "sgd"} {
  // expected-error@+1 {{'param "sgd.lr"' has the name of a state of optimizer 'sgd': expected another name}}
  func.func @forward(%w: tensor<f32> {tandem.role = #tandem.role<param "sgd.lr" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<f32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<f32> {tandem.role = #tandem.role<grad of "sgd.lr">}) {
    return %dy : tensor<f32>
  }
}

// -----

// T03: gradients are used times one factor, and nothing but the counts changes
// where the norm is not finite.
// CHECK-LABEL: module @clipped
// CHECK: func.func @update(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<param "w"
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<param "b"
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<2xf32>
// CHECK-SAME: %[[H:[a-z0-9]+]]: tensor<f32>
// CHECK-SAME: state "sgd.grad_norm"
// CHECK-SAME: %[[SKIPPED:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<state "sgd.skipped"
// CHECK-SAME: -> (tensor<2xf32> {tandem.role = #tandem.role<update of "w">}
// CHECK-DAG: %[[GG:.*]] = tandem.mul %[[G]], %[[G]]
// CHECK-DAG: %[[SUM:.*]] = tandem.reduce_sum %[[GG]] over [0]
// CHECK-DAG: %[[HH:.*]] = tandem.mul %[[H]], %[[H]]
// CHECK: %[[ALL:.*]] = tandem.accumulate %[[SUM]], %[[HH]]
// CHECK: %[[NORM:.*]] = tandem.sqrt %[[ALL]]
// CHECK: %[[FINITE:.*]] = tandem.compare le %[[NORM]]
// CHECK: tandem.select %[[FINITE]], %[[SKIPPED]]
// CHECK: %[[FACTOR:.*]] = tandem.minimum
// CHECK: tandem.broadcast %[[FACTOR]]
// CHECK: tandem.select {{.*}}, %[[W]]
// CHECK: tandem.select %[[FINITE]], {{.*}}, %[[B]]
module @clipped attributes {tandem.optimizer = "sgd", tandem.clip = "norm:1"} {
  func.func @forward(%w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}, %b: tensor<f32> {tandem.role = #tandem.role<param "b" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "y">}, %dz: tensor<f32> {tandem.role = #tandem.role<cotangent of "z">})
      -> (tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}, tensor<f32> {tandem.role = #tandem.role<grad of "b">}) {
    return %dy, %dz : tensor<2xf32>, tensor<f32>
  }
}

// -----

// A NaN stays one.
// CHECK-LABEL: module @clipped_values
// CHECK: func.func @update(
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}
// CHECK-NOT: grad_norm
// CHECK: %[[LOW:.*]] = tandem.maximum %[[G]]
// CHECK: tandem.minimum %[[LOW]]
// CHECK-NOT: tandem.select
module @clipped_values attributes {tandem.optimizer = "sgd", tandem.clip = "value:0.5"} {
  func.func @forward(%w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}) {
    return %dy : tensor<2xf32>
  }
}

// -----

// Noise is added to what is clipped, and the mean of each row of that goes. The
// seed stays, and the number of updates rises by one.
// CHECK-LABEL: module @noise
// CHECK: func.func @update(
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<2x4xf32> {tandem.role = #tandem.role<grad of "w">}
// CHECK-SAME: %[[STATE:[a-z0-9]+]]: tensor<2xi64> {tandem.role = #tandem.role<state "sgd.noise" {init = {kind = "seed"}}>}
// CHECK-SAME: tensor<2xi64> {tandem.role = #tandem.role<update of "sgd.noise" {needs = {{\[\[}}"w"{{\]\]}}}>}
// CHECK-DAG: %[[LOW:.*]] = tandem.maximum %[[G]]
// CHECK-DAG: %[[CLIPPED:.*]] = tandem.minimum %[[LOW]]
// CHECK-DAG: tandem.philox
// CHECK: %[[NOISY:.*]] = tandem.add %[[CLIPPED]]
// CHECK: %[[SUM:.*]] = tandem.reduce_sum %[[NOISY]] over [1]
// CHECK: tandem.sub %[[NOISY]]
module @noise attributes {tandem.optimizer = "sgd", tandem.clip = "value:0.5", tandem.gradient_noise = "0.01", tandem.centralize} {
  func.func @forward(%w: tensor<2x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<2x4xf32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<2x4xf32> {tandem.role = #tandem.role<grad of "w">}) {
    return %dy : tensor<2x4xf32>
  }
}

// -----

// Rows of one element are their means, and keep them, beside others that have
// more.
// CHECK-LABEL: module @column
// CHECK: func.func @update
// CHECK: tandem.reduce_sum {{.*}} : tensor<2x4xf32>
// CHECK-NOT: tandem.reduce_sum
// CHECK: return
module @column attributes {tandem.optimizer = "sgd", tandem.centralize} {
  func.func @forward(%w: tensor<4x1xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}, %v: tensor<2x4xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<4x1xf32> {tandem.role = #tandem.role<cotangent of "y">}, %dz: tensor<2x4xf32> {tandem.role = #tandem.role<cotangent of "z">}) -> (tensor<4x1xf32> {tandem.role = #tandem.role<grad of "w">}, tensor<2x4xf32> {tandem.role = #tandem.role<grad of "v">}) {
    return %dy, %dz : tensor<4x1xf32>, tensor<2x4xf32>
  }
}

// -----

// expected-error@+2 {{--centralize has no effect}}
module @columns_alone attributes {tandem.optimizer = "sgd", tandem.centralize} {
  func.func @forward(%w: tensor<4x1xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<4x1xf32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<4x1xf32> {tandem.role = #tandem.role<grad of "w">}) {
    return %dy : tensor<4x1xf32>
  }
}

// -----

// expected-error@+1 {{'tandem.gradient_noise': expected a variance from 1.18e-38 to 1e+06, and perhaps ',gamma=N' with a number from 0 to 100, but got '0'}}
module @no_noise attributes {tandem.optimizer = "sgd", tandem.gradient_noise = "0"} {
  func.func @forward(%w: tensor<f32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<f32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<f32> {tandem.role = #tandem.role<grad of "w">}) {
    return %dy : tensor<f32>
  }
}

// -----

// expected-error@+1 {{'tandem.clip' needs 'tandem.optimizer', whose update is meant}}
module @clip_alone attributes {tandem.clip = "norm:1"} {
  func.func @forward() { return }
}

// -----

// expected-error@+1 {{'tandem.clip': expected 'norm' to be followed by a number from 1.18e-38 to 3.4e+38, as 'norm:1.0', but got 'norm:-1'}}
module @clip_wrong attributes {tandem.optimizer = "sgd", tandem.clip = "norm:-1"} {
  func.func @forward(%w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}) {
    return %dy : tensor<2xf32>
  }
}

// -----

// T04: the mean of what was added up and of this gradient is used, and the sums
// are cleared; @accumulation adds a gradient.
// CHECK-LABEL: module @sums
// CHECK: func.func @update(
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}
// CHECK-SAME: %[[SUM:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<state "sgd.sum:w"
// CHECK-SAME: %[[COUNT:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<state "sgd.summed:w"
// CHECK-SAME: update of "sgd.sum:w" {needs = {{\[\[}}"w"]]}
// CHECK: %[[N:.*]] = tandem.add %[[COUNT]]
// CHECK: %[[USED:.*]] = tandem.compare gt %[[N]]
// CHECK: tandem.select {{.*}}, %[[SUM]]
// CHECK: tandem.select %[[USED]], {{.*}}, %[[COUNT]]
// CHECK: %[[PART:.*]] = tandem.div {{.*}}, %[[N]]
// CHECK: %[[ALL:.*]] = tandem.add %[[SUM]], %[[G]]
// CHECK: tandem.mul %[[ALL]]
// CHECK: func.func @accumulation(
// CHECK-SAME: %[[G2:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}
// CHECK-SAME: %[[SUM2:[a-z0-9]+]]: tensor<2xf32> {tandem.role = #tandem.role<state "sgd.sum:w"
// CHECK: tandem.add %[[SUM2]], %[[G2]]
module @sums attributes {tandem.optimizer = "sgd", tandem.accumulate} {
  func.func @forward(%w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}) {
    return %dy : tensor<2xf32>
  }
}

// -----

// A stage of a pipeline finds the norm of its own gradients, and its update reads
// that of all stages. A group that none of its params is of may be another's.
// CHECK-LABEL: module @stage
// CHECK: func.func @update(
// CHECK-SAME: %[[NORM:[a-z0-9]+]]: tensor<f32> {tandem.role = #tandem.role<state "sgd.grad_norm"
// CHECK-NOT: sqrt
// CHECK: tandem.compare le %[[NORM]]
// CHECK: func.func @norm(
// CHECK-SAME: -> (tensor<f32> {tandem.role = #tandem.role<update of "sgd.grad_norm">})
// CHECK: tandem.sqrt
module @stage attributes {tandem.optimizer = "sgd", tandem.clip = "norm:1", tandem.groups = ["v:lr=0.1"], tandem.pipeline = {ranks = 2 : i64, stage = 0 : i64, stages = 2 : i64}} {
  func.func @forward(%w: tensor<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}) { return }
  func.func @backward(%dy: tensor<2xf32> {tandem.role = #tandem.role<cotangent of "y">}) -> (tensor<2xf32> {tandem.role = #tandem.role<grad of "w">}) {
    return %dy : tensor<2xf32>
  }
}
