// RUN: tandem-opt %s -canonicalize -cse -tandem-erase-dead-ops | FileCheck %s

// Equal ones are two, in their order; what nobody reads goes, a barrier stays.
module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // CHECK-LABEL: func.func @f
  // CHECK-NEXT: %[[A:.*]] = tandem.all_reduce sum %arg0
  // CHECK-NEXT: tandem.barrier
  // CHECK-NEXT: %[[B:.*]] = tandem.all_reduce sum %arg0
  // CHECK-NEXT: return %[[A]], %[[B]]
  func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a = tandem.all_reduce sum %x over ["data"] : tensor<4xf32> -> tensor<4xf32>
    tandem.barrier over ["data"]
    %b = tandem.all_reduce sum %x over ["data"] : tensor<4xf32> -> tensor<4xf32>
    %c = tandem.all_reduce max %x over ["data"] : tensor<4xf32> -> tensor<4xf32>
    return %a, %b : tensor<4xf32>, tensor<4xf32>
  }
}
