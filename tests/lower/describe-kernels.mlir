// What a manifest says of kernels: the heaviest op, its element type, and the
// bytes that have to move.
// RUN: tandem-opt %s --tandem-plan-programs --tandem-lower-to-cpu --split-input-file | FileCheck %s

// The rows that are taken, not the table: 2 x 4 rows of 8, and the indices.
module @take attributes {tandem.phase = "partition"} {
  func.func @evaluate(%table: tensor<1000x8xf32> {tandem.role = #tandem.role<param "table">},
                      %indices: tensor<4xi64> {tandem.role = #tandem.role<input "i">})
      -> (tensor<4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.take %table, %indices : tensor<1000x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }
}
// CHECK-LABEL: module @take
// CHECK: tandem.kernel = #tandem.kernel_facts<{{.*}}bytes = 288
// CHECK-SAME: summary = "take 1000x8 4xi64 -> 4x8"

// -----

// The type is that of the factors, whatever the activation is in.
module @product attributes {tandem.phase = "partition"} {
  func.func @evaluate(%a: tensor<16x4xf64> {tandem.role = #tandem.role<input "a">},
                      %b: tensor<16x4xf64> {tandem.role = #tandem.role<input "b">})
      -> (tensor<16x16xf64> {tandem.role = #tandem.role<output "y">}) {
    %p = tandem.matmul %a, %b {transpose_rhs} : tensor<16x4xf64>, tensor<16x4xf64> -> tensor<16x16xf64>
    %y = tandem.exp %p : tensor<16x16xf64>
    return %y : tensor<16x16xf64>
  }
}
// CHECK-LABEL: module @product
// CHECK: tandem.kernel = #tandem.kernel_facts<kind = "contraction", ops = ["tandem.matmul", "tandem.exp"], flops = 2304, bytes = 3072
// CHECK-SAME: summary = "matmul 16x4xf64 16x4xf64 -> 16x16xf64 transpose_rhs"

// -----

// Of what is only sliced, the slice; views are all that there is to say.
module @slice attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<64x8xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<8x4xf32> {tandem.role = #tandem.role<output "y">}) {
    %s = tandem.slice %x from [0, 0] to [4, 8] step [1, 1] : tensor<64x8xf32> -> tensor<4x8xf32>
    %y = tandem.permute %s by [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}
// CHECK-LABEL: module @slice
// CHECK: tandem.kernel = #tandem.kernel_facts<kind = "pointwise", {{.*}}bytes = 256
// CHECK-SAME: summary = "permute 4x8 -> 8x4"
