// RUN: tandem-opt %s -tandem-order-collectives | FileCheck %s

// X20: numbers decide, as far as the data flow allows, and what one needs comes
// with it.
module attributes {tandem.mesh = #tandem.mesh<data = 2, tensor = 2>} {
  // CHECK-LABEL: func.func @numbers
  // CHECK-NEXT: %[[E:.*]] = tandem.exp %arg1
  // CHECK-NEXT: tandem.all_reduce sum %[[E]] over ["tensor"] {number = 0 : i64}
  // CHECK-NEXT: tandem.all_reduce sum %arg0 over ["data"] {number = 1 : i64}
  // CHECK-NEXT: %[[A:.*]] = tandem.all_reduce sum %arg0 over ["data"] : tensor
  // CHECK-NEXT: tandem.all_reduce sum %[[A]] over ["data"] {number = 0 : i64}
  func.func @numbers(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %a = tandem.all_reduce sum %x over ["data"] : tensor<4xf32> -> tensor<4xf32>
    %b = tandem.all_reduce sum %a over ["data"] {number = 0} : tensor<4xf32> -> tensor<4xf32>
    %c = tandem.all_reduce sum %x over ["data"] {number = 1} : tensor<4xf32> -> tensor<4xf32>
    %e = tandem.exp %y : tensor<4xf32>
    %d = tandem.all_reduce sum %e over ["tensor"] {number = 0} : tensor<4xf32> -> tensor<4xf32>
    return %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  // CHECK-LABEL: func.func @barrier
  // CHECK-NEXT: tandem.all_reduce sum %arg0 over ["data"] : tensor
  // CHECK-NEXT: tandem.barrier
  // CHECK-NEXT: tandem.all_reduce sum %arg0 over ["data"] {number = 0 : i64}
  func.func @barrier(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a = tandem.all_reduce sum %x over ["data"] : tensor<4xf32> -> tensor<4xf32>
    tandem.barrier over ["data"]
    %b = tandem.all_reduce sum %x over ["data"] {number = 0} : tensor<4xf32> -> tensor<4xf32>
    return %a, %b : tensor<4xf32>, tensor<4xf32>
  }
}
