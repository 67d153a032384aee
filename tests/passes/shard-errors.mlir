// Shardings that a value cannot have.
//
// RUN: tandem-opt %s -split-input-file -verify-diagnostics -tandem-assign-shardings -tandem-shard

// expected-error@+1 {{expected the mesh (tensor=2) to have an axis 'data', which 'tandem.parallel' needs}}
module attributes {tandem.mesh = #tandem.mesh<tensor = 2>, tandem.parallel = ["ddp"]} {
}

// -----

// expected-error@+1 {{'tp' needs a plan that says how parameters are cut (--shard)}}
module attributes {tandem.mesh = #tandem.mesh<tensor = 2>, tandem.parallel = ["tp"]} {
}

// -----

// expected-error@+1 {{'tandem.parallel' names no plan: 'dpp'}}
module attributes {tandem.mesh = #tandem.mesh<data = 2>, tandem.parallel = ["dpp"]} {
}

// -----

// expected-error@+1 {{no input, param, state or output has a name that 'v' matches}}
module attributes {tandem.mesh = #tandem.mesh<tensor = 2>, tandem.shard = {v = [["tensor"]]}} {
  func.func @evaluate(%w: tensor<4xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.neg %w : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<tensor = 2>, tandem.shard = {w = [["data"]]}} {
  // expected-error@+1 {{expected dimension 0 to be cut over axes of the mesh (tensor=2), but got 'data'}}
  func.func @evaluate(%w: tensor<4xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.neg %w : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // expected-error@+1 {{gradients of second order are not compiled for a mesh of ranks yet}}
  func.func @grad_joint(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<4xf32>
  }
}
