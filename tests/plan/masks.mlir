// RUN: tandem-opt %s --tandem-plan-programs | FileCheck %s

// A mask that is a function of one tensor is made again where it is used, also
// if it reads the tensor twice: both sums over rows of x are one kernel, though
// what stands between them uses the mask, too.
// CHECK-LABEL: module @labels
// CHECK: tandem.kernel
// CHECK: tandem.reduce_max {{.*}} over [1] : tensor<512x64xf32>
// CHECK: tandem.logical_and
// CHECK: tandem.yield {{.*}} : tensor<512xf32>, tensor<512x64xf32>
// CHECK: tandem.kernel
// CHECK: tandem.logical_and
// CHECK: over [0] : tensor<512xf32> -> tensor<f32>
// CHECK-NOT: tandem.kernel
module @labels attributes {tandem.phase = "partition"} {
  func.func @evaluate(%x: tensor<512x64xf32> {tandem.role = #tandem.role<input "x">}, %labels: tensor<512xi64> {tandem.role = #tandem.role<input "labels">}) -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}, tensor<512x64xf32> {tandem.role = #tandem.role<output "dx">}) {
    %zero = tandem.constant dense<0> : tensor<512xi64>
    %end = tandem.constant dense<64> : tensor<512xi64>
    %nothing = tandem.constant dense<0.0> : tensor<512xf32>
    %largest = tandem.reduce_max %x over [1] : tensor<512x64xf32> -> tensor<512xf32>
    %low = tandem.compare ge %labels, %zero : tensor<512xi64>
    %high = tandem.compare lt %labels, %end : tensor<512xi64>
    %valid = tandem.logical_and %low, %high : tensor<512xi1>
    %rows = tandem.select %valid, %largest, %nothing : tensor<512xi1>, tensor<512xf32>
    %loss = tandem.reduce_sum %rows over [0] : tensor<512xf32> -> tensor<f32>
    %wide = tandem.broadcast %largest to [512, 64] along [0] : tensor<512xf32> -> tensor<512x64xf32>
    %shifted = tandem.sub %x, %wide : tensor<512x64xf32>
    %mask = tandem.broadcast %valid to [512, 64] along [0] : tensor<512xi1> -> tensor<512x64xi1>
    %none = tandem.constant dense<0.0> : tensor<512x64xf32>
    %dx = tandem.select %mask, %shifted, %none : tensor<512x64xi1>, tensor<512x64xf32>
    return %loss, %dx : tensor<f32>, tensor<512x64xf32>
  }
}
