// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-take-stage | FileCheck %s

// The first of two stages: it gives %h, and has no loss.

// CHECK-LABEL: module @first attributes {
// CHECK-SAME: gives = ["pipe.0"]
// CHECK-SAME: inputs = [{role = #tandem.role<input "x">, type = tensor<8xf32>}]
// CHECK-SAME: takes = []
// CHECK: func.func @graph(%[[X:.*]]: tensor<8xf32> {tandem.role = #tandem.role<input "x">}, %[[V:.*]]: tensor<8xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>})
// CHECK-SAME: -> (tensor<8xf32> {tandem.role = #tandem.role<output "pipe.0">})
// CHECK-NEXT: constant
// CHECK-NEXT: %[[IN:.*]] = tandem.mul %[[X]]
// CHECK-NEXT: %[[H:.*]] = tandem.mul %[[IN]], %[[V]] : tensor<8xf32>
// CHECK-NEXT: return %[[H]]
module @first attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stage = 0 : i64, stages = 2 : i64}} {
  func.func @graph(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x">},
      %v: tensor<8xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>},
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %half = tandem.constant {tandem.stage = 0 : i64} dense<0.5> : tensor<8xf32>
    %in = tandem.mul %x, %half {tandem.stage = 0 : i64} : tensor<8xf32>
    %h = tandem.mul %in, %v {tandem.stage = 0 : i64} : tensor<8xf32>
    %y = tandem.mul %h, %w {tandem.stage = 1 : i64} : tensor<8xf32>
    %z = tandem.mul %y, %in {tandem.stage = 1 : i64} : tensor<8xf32>
    %loss = tandem.reduce_sum %z over [0] {tandem.stage = 1 : i64} : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The second one takes it, and computes %in again.

// CHECK-LABEL: module @second attributes {
// CHECK-SAME: tandem.loss = "loss"
// CHECK-SAME: takes = ["pipe.0"]
// CHECK: func.func @graph(%[[X:.*]]: tensor<8xf32> {tandem.role = #tandem.role<input "x">}, %[[W:.*]]: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>}, %[[H:.*]]: tensor<8xf32> {tandem.role = #tandem.role<input "pipe.0" {requires_grad}>})
// CHECK-SAME: -> (tensor<f32> {tandem.role = #tandem.role<output "loss">})
// CHECK-NEXT: constant
// CHECK-NEXT: %[[IN:.*]] = tandem.mul %[[X]]
// CHECK-NEXT: %[[Y:.*]] = tandem.mul %[[H]], %[[W]] : tensor<8xf32>
// CHECK-NEXT: tandem.mul %[[Y]], %[[IN]]
module @second attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stage = 1 : i64, stages = 2 : i64}} {
  func.func @graph(
      %x: tensor<8xf32> {tandem.role = #tandem.role<input "x">},
      %v: tensor<8xf32> {tandem.role = #tandem.role<param "v" {requires_grad}>},
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %half = tandem.constant {tandem.stage = 0 : i64} dense<0.5> : tensor<8xf32>
    %in = tandem.mul %x, %half {tandem.stage = 0 : i64} : tensor<8xf32>
    %h = tandem.mul %in, %v {tandem.stage = 0 : i64} : tensor<8xf32>
    %y = tandem.mul %h, %w {tandem.stage = 1 : i64} : tensor<8xf32>
    %z = tandem.mul %y, %in {tandem.stage = 1 : i64} : tensor<8xf32>
    %loss = tandem.reduce_sum %z over [0] {tandem.stage = 1 : i64} : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// X11: a param of two stages is the first one's, and a value for the other.

// CHECK-LABEL: module @tied
// CHECK-SAME: params = {pipe.0 = "w"}
// CHECK: func.func @graph(%[[H:.*]]: tensor<8xf32> {tandem.role = #tandem.role<input "pipe.0" {requires_grad}>}, %[[W:.*]]: tensor<8xf32> {tandem.role = #tandem.role<input "pipe.1" {requires_grad}>})
// CHECK-NEXT: tandem.mul %[[W]], %[[H]]
module @tied attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stage = 1 : i64, stages = 2 : i64}} {
  func.func @graph(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %h = tandem.exp %w {tandem.stage = 0 : i64} : tensor<8xf32>
    %y = tandem.mul %h, %w {tandem.stage = 1 : i64} : tensor<8xf32>
    %loss = tandem.reduce_sum %y over [0] {tandem.stage = 1 : i64} : tensor<8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// expected-error@+1 {{expected 'tandem.pipeline' to say which stage is taken ('stage')}}
module @none attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stages = 2 : i64}} {
  func.func @graph(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<8xf32> {tandem.role = #tandem.role<output "loss">}) {
    %h = tandem.exp %w {tandem.stage = 0 : i64} : tensor<8xf32>
    return %h : tensor<8xf32>
  }
}

// -----

module @early attributes {tandem.phase = "functionalize", tandem.pipeline = {ranks = 2 : i64, stage = 0 : i64, stages = 2 : i64}} {
  func.func @graph(
      %w: tensor<8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}, tensor<8xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{expected the loss 'loss' to be made in the last stage, 1}}
    %loss = tandem.reduce_sum %w over [0] {tandem.stage = 0 : i64} : tensor<8xf32> -> tensor<f32>
    %y = tandem.exp %w {tandem.stage = 1 : i64} : tensor<8xf32>
    return %loss, %y : tensor<f32>, tensor<8xf32>
  }
}
