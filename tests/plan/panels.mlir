// RUN: tandem-opt %s -split-input-file -tandem-plan-programs | FileCheck %s

// Panels are read where they are, through all views that show the matrix.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "matmul"(%{{.*}}, %{{.*}}) {
// CHECK: tandem.permute
// CHECK-NEXT: tandem.reshape
// CHECK-NEXT: tandem.slice
// CHECK-NEXT: tandem.matmul
// CHECK-NOT: tandem.kernel
module @panels attributes {tandem.phase = "partition"} {
  func.func @evaluate(
      %x: tensor<16x96xf32> {tandem.role = #tandem.role<input "x">},
      %p: tensor<3x96x64xf32> {tandem.role = #tandem.role<input "p">})
      -> (tensor<16x150xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.permute %p by [1, 0, 2] : tensor<3x96x64xf32> -> tensor<96x3x64xf32>
    %1 = tandem.reshape %0 to [96, 192] : tensor<96x3x64xf32> -> tensor<96x192xf32>
    %2 = tandem.slice %1 from [0, 0] to [96, 150] step [1, 1] : tensor<96x192xf32> -> tensor<96x150xf32>
    %3 = tandem.matmul %x, %2 : tensor<16x96xf32>, tensor<96x150xf32> -> tensor<16x150xf32>
    return %3 : tensor<16x150xf32>
  }
}

// -----

// Other pieces are no panels: the matrix is made first.
// CHECK-LABEL: func.func @evaluate
// CHECK: tandem.kernel "permute"
// CHECK: tandem.kernel "matmul"
module @others attributes {tandem.phase = "partition"} {
  func.func @evaluate(
      %x: tensor<16x96xf32> {tandem.role = #tandem.role<input "x">},
      %p: tensor<4x96x48xf32> {tandem.role = #tandem.role<input "p">})
      -> (tensor<16x192xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.permute %p by [1, 0, 2] : tensor<4x96x48xf32> -> tensor<96x4x48xf32>
    %1 = tandem.reshape %0 to [96, 192] : tensor<96x4x48xf32> -> tensor<96x192xf32>
    %2 = tandem.matmul %x, %1 : tensor<16x96xf32>, tensor<96x192xf32> -> tensor<16x192xf32>
    return %2 : tensor<16x192xf32>
  }
}
