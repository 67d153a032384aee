// RUN: tandem-opt %s -split-input-file -tandem-build-joint -verify-diagnostics

module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{'tandem.while' op has no gradient, but 'input "x"' (argument #0) requires one}}
    %y = tandem.while carries(%x) constants() condition {
      ^bb0(%a: tensor<f32>):
        %k = tandem.constant dense<8.0> : tensor<f32>
        %c = tandem.compare lt %a, %k : tensor<f32>
        tandem.yield %c : tensor<i1>
    } body {
      ^bb0(%a: tensor<f32>):
        %b = tandem.add %a, %a : tensor<f32>
        tandem.yield %b : tensor<f32>
    } : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

// In a region the error is at the op, and names what wants the gradient.
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.scan 3 carries(%x) inputs() constants() {
      ^bb0(%o: tensor<f32>):
        // expected-error@+1 {{'tandem.while' op has no gradient, but 'tandem.scan' requires one}}
        %z = tandem.while carries(%o) constants() condition {
          ^bb0(%a: tensor<f32>):
            %k = tandem.constant dense<8.0> : tensor<f32>
            %c = tandem.compare lt %a, %k : tensor<f32>
            tandem.yield %c : tensor<i1>
        } body {
          ^bb0(%a: tensor<f32>):
            %b = tandem.add %a, %a : tensor<f32>
            tandem.yield %b : tensor<f32>
        } : (tensor<f32>) -> tensor<f32>
        tandem.yield %z : tensor<f32>
    } : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

// A loop with too many iterations for a stack of its carry.
module attributes {tandem.phase = "functionalize"} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    // expected-error@+1 {{has too many iterations (1099511627776) to keep carry #0 of type 'tensor<4xf32>' of each of them for the gradient}}
    %y = tandem.scan 1099511627776 carries(%x) inputs() constants() {
      ^bb0(%a: tensor<4xf32>):
        %b = tandem.mul %a, %a : tensor<4xf32>
        tandem.yield %b : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
