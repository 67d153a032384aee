// RUN: tandem-opt %s -tandem-lead-collectives | FileCheck %s

module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // CHECK-LABEL: func.func @gather
  // CHECK: %[[X:.*]] = tandem.permute %arg0 {{.*}}tensor<4x6xf32> -> tensor<6x4xf32>
  // CHECK: %[[Y:.*]] = tandem.all_gather %[[X]] dim 0 over ["data"] {number = 1 : i64} : tensor<6x4xf32> -> tensor<12x4xf32>
  // CHECK: tandem.permute %[[Y]] {{.*}}tensor<12x4xf32> -> tensor<4x12xf32>
  func.func @gather(%x: tensor<4x6xf32>) -> tensor<4x12xf32> {
    %y = tandem.all_gather %x dim 1 over ["data"] {number = 1} : tensor<4x6xf32> -> tensor<4x12xf32>
    return %y : tensor<4x12xf32>
  }
  // What is along dimension 0 stays as it is.
  // CHECK-LABEL: func.func @scatter
  // CHECK-NEXT: tandem.reduce_scatter sum %arg0 dim 0
  // CHECK-NEXT: return
  func.func @scatter(%x: tensor<4x6xf32>) -> tensor<2x6xf32> {
    %y = tandem.reduce_scatter sum %x dim 0 over ["data"] : tensor<4x6xf32> -> tensor<2x6xf32>
    return %y : tensor<2x6xf32>
  }
  // CHECK-LABEL: func.func @exchange
  // CHECK: %[[X:.*]] = tandem.permute %arg0 {{.*}}tensor<4x6xf32> -> tensor<6x4xf32>
  // CHECK: tandem.all_to_all %[[X]] split 0 concat 0 over ["data"] : tensor<6x4xf32> -> tensor<6x4xf32>
  // CHECK: tandem.reshape {{.*}} to [2, 3, 4]
  // CHECK: tandem.reshape {{.*}} to [8, 3]
  func.func @exchange(%x: tensor<4x6xf32>) -> tensor<8x3xf32> {
    %y = tandem.all_to_all %x split 1 concat 0 over ["data"] : tensor<4x6xf32> -> tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
}
