// RUN: tandem-opt %s -tandem-clear-tags | FileCheck %s

// A joint keeps what it says about saving, which a program for inference does
// not need; nobody differentiates either any more.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.exp %{{[a-z0-9]+}} : tensor<4xf32>
// CHECK: tandem.sin %{{[a-z0-9]+}} : tensor<4xf32>
// CHECK-LABEL: func.func @joint
// CHECK: tandem.exp %{{[a-z0-9]+}} {tandem.pass = "forward", tandem.save} : tensor<4xf32>
// CHECK: tandem.sin %{{[a-z0-9]+}} {tandem.pass = "forward"} : tensor<4xf32>
module {
  func.func @evaluate(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %e = tandem.exp %x {tandem.save} : tensor<4xf32>
    %y = tandem.sin %e {tandem.no_grad} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
  func.func @joint(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %e = tandem.exp %x {tandem.pass = "forward", tandem.save} : tensor<4xf32>
    %y = tandem.sin %e {tandem.pass = "forward", tandem.no_grad} : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
