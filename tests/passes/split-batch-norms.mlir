// RUN: tandem-opt %s --tandem-split-batch-norms | FileCheck %s

// Two ranks have two rows each; what evaluates stays as it is.
module attributes {tandem.phase = "functionalize", tandem.batch_norm = "per-rank",
                   tandem.mesh = #tandem.mesh<data = 2, tensor = 3>} {
  // CHECK-LABEL: func @graph
  // CHECK: %[[GROUPS:.*]] = tandem.reshape %{{.*}} : tensor<4x3x5xf32> -> tensor<2x2x3x5xf32>
  // CHECK: tandem.reduce_sum %[[GROUPS]] over [1, 3] : tensor<2x2x3x5xf32> -> tensor<2x3xf32>
  // CHECK: tandem.reduce_sum %{{.*}} over [0] : tensor<2x3xf32> -> tensor<3xf32>
  // CHECK-NOT: batch_norm
  func.func @graph(%x: tensor<4x3x5xf32>, %c: tensor<3xf32>)
      -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>) {
    %y:3 = tandem.batch_norm %x, %c, %c, %c, %c {training} : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
    return %y#0, %y#1, %y#2 : tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>
  }
  // CHECK-LABEL: func @evaluate
  // CHECK: tandem.batch_norm
  func.func @evaluate(%x: tensor<4x3x5xf32>, %c: tensor<3xf32>) -> tensor<4x3x5xf32> {
    %y:3 = tandem.batch_norm %x, %c, %c, %c, %c : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>)
    return %y#0 : tensor<4x3x5xf32>
  }
}
