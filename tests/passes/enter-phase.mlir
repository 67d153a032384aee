// RUN: tandem-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(tandem-enter-phase{after=functionalize})'

// A module that is where the phase begins passes.
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.mul %x, %w : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// expected-error@+1 {{expected phase 'functionalize' but got 'capture'}}
module attributes {tandem.phase = "capture"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}, %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.mul %x, %w : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
