// RUN: tandem-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(tandem-share-draws))' | FileCheck %s

// Each is read from a constant that lies in memory.
// CHECK-LABEL: func @several
// CHECK: %[[SEVEN:.*]] = tandem.constant dense<[7, -1]> : tensor<2xi64>
// CHECK: %[[ONE:.*]] = tandem.slice %[[SEVEN]] from [0] to [1] step [1]
// CHECK: %[[WORD:.*]] = tandem.reshape %[[ONE]] to []
// CHECK: %[[DRAW:.*]] = tandem.broadcast %[[WORD]] to [4] along []
// CHECK: tandem.philox %arg0, %arg0, %arg0 draw %[[DRAW]]
// CHECK: tandem.constant dense<[2, -1]> : tensor<2xi64>
// CHECK: tandem.constant dense<[7, -1]> : tensor<2xi64>
func.func @several(%a: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf64>) {
  %7 = tandem.constant dense<7> : tensor<4xi64>
  %2 = tandem.constant dense<2> : tensor<4xi64>
  %x = tandem.philox %a, %a, %a draw %7 : tensor<4xf32>
  %y = tandem.philox %a, %a, %a draw %2 : tensor<4xf32>
  %z = tandem.philox %a, %a, %a draw %7 : tensor<4xf64>
  return %x, %y, %z : tensor<4xf32>, tensor<4xf32>, tensor<4xf64>
}

// -----

// One, and one that is computed, stay as they are.
// CHECK-LABEL: func @one
// CHECK-NOT: tandem.slice
// CHECK: tandem.philox %arg0, %arg0, %arg0 draw %{{.*}} : tensor<4xf32>
// CHECK: tandem.philox %arg0, %arg0, %arg0 draw %arg0 : tensor<4xf32>
func.func @one(%a: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %7 = tandem.constant dense<7> : tensor<4xi64>
  %x = tandem.philox %a, %a, %a draw %7 : tensor<4xf32>
  %y = tandem.philox %a, %a, %a draw %a : tensor<4xf32>
  return %x, %y : tensor<4xf32>, tensor<4xf32>
}
