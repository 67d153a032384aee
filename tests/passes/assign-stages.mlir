// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-assign-stages | FileCheck %s

// The two products are the most work. What the second stage computes of inputs
// alone is of no stage: constants, and what scales them.

// CHECK-LABEL: module @balanced
// CHECK: tandem.mul {{.*}}tandem.stage = 0
// CHECK: tandem.matmul {{.*}}tandem.stage = 0
// CHECK: tandem.relu {{.*}}tandem.stage = 1
// CHECK: tandem.matmul {{.*}}tandem.stage = 1
// CHECK: tandem.reduce_sum {{.*}}tandem.stage = 1
module @balanced attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stages = 2 : i64}} {
  func.func @graph(
      %x: tensor<64x64xf32> {tandem.role = #tandem.role<input "x">},
      %v: tensor<64x64xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>},
      %w: tensor<64x64xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %half = tandem.constant dense<0.5> : tensor<64x64xf32>
    %in = tandem.mul %x, %half : tensor<64x64xf32>
    %a = tandem.matmul %in, %v : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %h = tandem.relu %a : tensor<64x64xf32>
    %b = tandem.matmul %h, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %loss = tandem.reduce_sum %b over [0, 1] : tensor<64x64xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What nothing reads has no stage: %a was sent to that of %dead, and a user
// warned that it has no gradient there.

// CHECK-LABEL: module @dead
// CHECK: tandem.exp
// CHECK-NEXT: tandem.tanh
// CHECK-NEXT: tandem.reduce_sum
module @dead attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stages = 2 : i64}} {
  func.func @graph(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %a = tandem.exp %w : tensor<8xf32>
    %b = tandem.tanh %a : tensor<8xf32>
    %dead = tandem.reshape %a to [2, 4] {tandem.stage = 1 : i64} : tensor<8xf32> -> tensor<2x4xf32>
    %loss = tandem.reduce_sum %b over [0] {tandem.stage = 1 : i64} : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// An op is of the stage of the last one in front of it that says its own.

// CHECK-LABEL: module @said
// CHECK: tandem.exp {{.*}}tandem.stage = 0
// CHECK: tandem.tanh {{.*}}tandem.stage = 1
// CHECK: tandem.relu {{.*}}tandem.stage = 1
// CHECK: tandem.reduce_sum {{.*}}tandem.stage = 2
module @said attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 3 : i64, stages = 3 : i64}} {
  func.func @graph(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %a = tandem.exp %w : tensor<8xf32>
    %b = tandem.tanh %a {tandem.stage = 1 : i64} : tensor<8xf32>
    %c = tandem.relu %b : tensor<8xf32>
    %loss = tandem.reduce_sum %c over [0] {tandem.stage = 2 : i64} : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module @back attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stages = 2 : i64}} {
  func.func @graph(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    // expected-note@+1 {{stage 1 is here}}
    %a = tandem.exp %w {tandem.stage = 1 : i64} : tensor<8xf32>
    // expected-error@+1 {{expected stage 1 or the next one, but got stage 0: stages are pieces of the graph in its order}}
    %b = tandem.tanh %a {tandem.stage = 0 : i64} : tensor<8xf32>
    %loss = tandem.reduce_sum %b over [0] : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

module @few attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 4 : i64, stages = 4 : i64}} {
  // expected-error@+1 {{expected at least 4 ops that can be in stages of their own, but got 2}}
  func.func @graph(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %a = tandem.exp %w : tensor<8xf32>
    %loss = tandem.reduce_sum %a over [0] : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// What is overwritten by what one stage computes stays in that stage.

module @state attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stages = 2 : i64}} {
  func.func @graph(
      %s: tensor<8xf32> {tandem.role = #tandem.role<state "s" {init = {kind = "constant", value = 0.0}}>},
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}, tensor<8xf32> {tandem.role = #tandem.role<update of "s">}) {
    // expected-note@+1 {{stage 0 is here}}
    %a = tandem.add %w, %s : tensor<8xf32>
    // expected-error@+1 {{'state "s"' is overwritten, and used in stages 0 and 1}}
    %b = tandem.tanh %a {tandem.stage = 1 : i64} : tensor<8xf32>
    %loss = tandem.reduce_sum %b over [0] : tensor<8xf32> -> tensor<f32>
    return %loss, %b : tensor<f32>, tensor<8xf32>
  }
}

// -----

// A plan of shardings is of the whole model.

// expected-error@+1 {{has a name that 'u' matches}}
module @planned attributes {tandem.mesh = #tandem.mesh<tensor = 2>, tandem.parallel = ["tp"], tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stages = 2 : i64}, tandem.shard = {u = [["tensor"]], w = [["tensor"]]}} {
  func.func @graph(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %h = tandem.exp %w {tandem.stage = 0 : i64} : tensor<8xf32>
    %loss = tandem.reduce_sum %h over [0] {tandem.stage = 1 : i64} : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
