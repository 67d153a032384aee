// RUN: tandem-opt %s -split-input-file -tandem-set-precision | FileCheck %s

// What the target asks of products stands at each, and nowhere else.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.matmul {{.*}}precision = "tf32"
// CHECK: tandem.exp
// CHECK-NOT: precision
// CHECK: return
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90", matmul_precision = "tf32"}>} {
  func.func @evaluate(%x: tensor<4x4xf32> {tandem.role = #tandem.role<input "x">}) -> (tensor<4x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %p = tandem.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %y = tandem.exp %p : tensor<4x4xf32>
    return %y : tensor<4x4xf32>
  }
}
