// Roles, the phase and the tags: what is accepted is printed as it was read;
// each rule that is broken has its message.
//
// RUN: tandem-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: module @model attributes {tandem.loss = "loss", tandem.optimizer = "sgd:lr=0.1", tandem.phase = "joint"}
// CHECK-LABEL: func.func @joint
// CHECK-SAME: #tandem.role<input "x" {requires_grad}>
// CHECK-SAME: #tandem.role<input "labels" {high = 10 : i64}>
// CHECK-SAME: #tandem.role<param "w" {init = {high = 1.000000e-01 : f64, kind = "uniform", low = -1.000000e-01 : f64}, requires_grad}>
// CHECK-SAME: #tandem.role<state "mean">
// CHECK-SAME: #tandem.role<cotangent of "loss">
// CHECK-SAME: -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}
// CHECK-SAME: #tandem.role<grad of "w">
// CHECK-SAME: #tandem.role<update of "mean" {in_place}>
// CHECK-SAME: #tandem.role<saved "relu.3" {reason = "cheap"}>
module @model attributes {tandem.phase = "joint", tandem.loss = "loss", tandem.optimizer = "sgd:lr=0.1"} {
  func.func @joint(
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %l: tensor<4xi64> {tandem.role = #tandem.role<input "labels" {high = 10}>},
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad, init = {kind = "uniform", low = -0.1, high = 0.1}}>},
      %m: tensor<4xf32> {tandem.role = #tandem.role<state "mean">},
      %d: tensor<f32> {tandem.role = #tandem.role<cotangent of "loss">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "w">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "mean" {in_place}>},
          tensor<4xf32> {tandem.role = #tandem.role<saved "relu.3" {reason = "cheap"}>}) {
    // CHECK: tandem.relu %{{.*}} {tandem.pass = "forward"}
    // CHECK: tandem.neg %{{.*}} {tandem.no_grad, tandem.pass = "backward"}
    %y = tandem.relu %x {tandem.pass = "forward"} : tensor<4xf32>
    %n = tandem.neg %y {tandem.pass = "backward", tandem.no_grad} : tensor<4xf32>
    return %d, %n, %n, %y : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// expected-error@+1 {{expected 'tandem.phase' to be a string, one of 'capture', 'functionalize', 'joint', 'optimize', 'partition', 'plan', 'lower', but got "run"}}
module attributes {tandem.phase = "run"} {
}

// -----

// expected-error@+1 {{'tandem.phase' belongs on a module}}
func.func private @f() attributes {tandem.phase = "joint"}

// -----

// expected-error@+1 {{unknown attribute 'tandem.color'}}
module attributes {tandem.color = "red"} {
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected 'tandem.pass' to be a string, one of 'forward', 'backward', but got "sideward"}}
  %y = tandem.relu %x {tandem.pass = "sideward"} : tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected 'tandem.no_grad' to be a unit attribute, but got 1 : i64}}
  %y = tandem.relu %x {tandem.no_grad = 1} : tensor<4xf32>
  return
}

// -----

// expected-error@+1 {{expected input, param, state, output, saved, cotangent, grad or update, but got 'weight'}}
func.func @f(%x: tensor<4xf32> {tandem.role = #tandem.role<weight "w">}) {
  return
}

// -----

// expected-error@+1 {{expected a role's name not to be empty}}
func.func @f(%x: tensor<4xf32> {tandem.role = #tandem.role<input "">}) {
  return
}

// -----

// expected-error@+1 {{unknown property 'init' of role 'input "x"'}}
func.func @f(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {init = {}}>}) {
  return
}

// -----

// expected-error@+1 {{expected 'of'}}
func.func @f(%x: tensor<4xf32> {tandem.role = #tandem.role<grad "x">}) {
  return
}

// -----

// expected-error@+1 {{expected 'tandem.role' on argument #0 to be a role, but got "x"}}
func.func @f(%x: tensor<4xf32> {tandem.role = "x"}) {
  return
}

// -----

// expected-error@+1 {{unknown attribute 'tandem.rule' on argument #0}}
func.func @f(%x: tensor<4xf32> {tandem.rule = "x"}) {
  return
}

// -----

// Everything that is wrong is said at once.
// expected-error@+7 {{expected names to be unique, but got 'input "x"' twice}}
// expected-error@+6 {{expected 'output "y"' to be a result, but it is argument #2}}
// expected-error@+5 {{expected argument #3 to have a role}}
// expected-error@+4 {{'param "i"' requires grad, so expected floating-point elements, but got 'tensor<4xi32>'}}
// expected-error@+3 {{expected 'input "none"' to be a tensor or ref of static shape, at most 2^40 elements, but got 'tensor<0xi3>'}}
// expected-error@+2 {{'update of "z"' names no argument}}
// expected-error@+1 {{expected 'update of "i"' to have type 'tensor<4xi32>', but got 'tensor<4xf32>'}}
func.func @f(
    %0: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
    %1: tensor<4xf32> {tandem.role = #tandem.role<input "x">},
    %2: tensor<4xf32> {tandem.role = #tandem.role<output "y">},
    %3: tensor<4xf32>,
    %4: tensor<4xi32> {tandem.role = #tandem.role<param "i" {requires_grad}>},
    %5: tensor<0xi3> {tandem.role = #tandem.role<input "none">})
    -> (tensor<4xf32> {tandem.role = #tandem.role<update of "z">},
        tensor<4xf32> {tandem.role = #tandem.role<update of "i">}) {
  return %0, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// safetensors has metadata under this name: checkpoints could not be saved.
#w = #tandem.role<param "__metadata__" {requires_grad}>
#y = #tandem.role<output "y">
module attributes {tandem.phase = "capture"} {
  // expected-error@+1 {{expected 'param "__metadata__"' to have another name: no tensor of a safetensors file can be called '__metadata__', so that it could not be saved}}
  func.func @graph(%w: tensor<4xf32> {tandem.role = #w})
      -> (tensor<4xf32> {tandem.role = #y}) {
    return %w : tensor<4xf32>
  }
}

// -----

// What an importer says of an index.
#i = #tandem.role<input "i">
#y = #tandem.role<output "y">
func.func @index(%i: tensor<4xi64> {tandem.role = #i}) -> (tensor<4xi64> {tandem.role = #y}) {
  // expected-error@+1 {{expected 'tandem.index_range' to be a cast's, of two i64, the first at most 0 and the second above it, but got array<i64: 1, 7>}}
  %0 = tandem.cast %i {tandem.index_range = array<i64: 1, 7>} : tensor<4xi64> to tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

#i = #tandem.role<input "i">
#y = #tandem.role<output "y">
func.func @index(%i: tensor<4xi64> {tandem.role = #i}) -> (tensor<4xi64> {tandem.role = #y}) {
  // expected-error@+1 {{expected 'tandem.index_range' to be a cast's}}
  %1 = tandem.neg %i {tandem.index_range = array<i64: 0, 7>} : tensor<4xi64>
  return %1 : tensor<4xi64>
}
