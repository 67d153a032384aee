// RUN: tandem-opt %s -split-input-file -tandem-simplify-windows | FileCheck %s

// The layers that squeeze and excite are products: vectors of pixels had one.
// CHECK-LABEL: func.func @squeeze
// CHECK: %[[X:.*]] = tandem.reshape %{{.*}} {tandem.pass = "forward"} : tensor<4x6x1x1xf32> -> tensor<4x6xf32>
// CHECK: %[[W:.*]] = tandem.reshape %{{.*}} {tandem.pass = "forward"} : tensor<2x6x1x1xf32> -> tensor<2x6xf32>
// CHECK: %[[Y:.*]] = tandem.matmul %[[X]], %[[W]] {precision = "tf32", tandem.pass = "forward", transpose_rhs}
// CHECK: tandem.reshape %[[Y]] to [4, 2, 1, 1] {tandem.pass = "forward", tandem.save} : tensor<4x2xf32> -> tensor<4x2x1x1xf32>
func.func @squeeze(%x: tensor<4x6x1x1xf32>, %w: tensor<2x6x1x1xf32>) -> tensor<4x2x1x1xf32> {
  %y = tandem.conv2d %x, %w {precision = "tf32", tandem.pass = "forward", tandem.save} : tensor<4x6x1x1xf32>, tensor<2x6x1x1xf32> -> tensor<4x2x1x1xf32>
  return %y : tensor<4x2x1x1xf32>
}

// -----

// A mean of a narrow type is rounded once.
// CHECK-LABEL: func.func @mean
// CHECK: %[[X:.*]] = tandem.cast %{{.*}} : tensor<2x3x5x7xbf16> to tensor<2x3x5x7xf32>
// CHECK: %[[SUM:.*]] = tandem.reduce_sum %[[X]] over [2, 3]
// CHECK: %[[MEAN:.*]] = tandem.div %[[SUM]]
// CHECK: tandem.cast %[[MEAN]] : tensor<2x3xf32> to tensor<2x3xbf16>
func.func @mean(%x: tensor<2x3x5x7xbf16>) -> tensor<2x3x1x1xbf16> {
  %y = tandem.avg_pool2d %x kernel [5, 7] strides [5, 7] : tensor<2x3x5x7xbf16> -> tensor<2x3x1x1xbf16>
  return %y : tensor<2x3x1x1xbf16>
}

// -----

// Nor is the number of its pixels, of which bf16 has 288.
// CHECK-LABEL: func.func @share
// CHECK: %[[DY:.*]] = tandem.cast %{{.*}} : tensor<2x3xbf16> to tensor<2x3xf32>
// CHECK: %[[N:.*]] = tandem.constant dense<2.890000e+02> : tensor<2x3xf32>
// CHECK: %[[SHARE:.*]] = tandem.div %[[DY]], %[[N]]
// CHECK: tandem.cast %[[SHARE]] : tensor<2x3xf32> to tensor<2x3xbf16>
func.func @share(%dy: tensor<2x3x1x1xbf16>) -> tensor<2x3x17x17xbf16> {
  %dx = tandem.avg_pool2d_grad %dy to [2, 3, 17, 17] kernel [17, 17] strides [17, 17] : tensor<2x3x1x1xbf16> -> tensor<2x3x17x17xbf16>
  return %dx : tensor<2x3x17x17xbf16>
}

// -----

// What sees more or less than the image, by padding, in parts or in groups.
// CHECK-LABEL: func.func @others
// CHECK-NOT: tandem.matmul
// CHECK-NOT: tandem.reduce_sum
func.func @others(%x: tensor<4x6x3x3xf32>, %w: tensor<6x6x3x3xf32>, %g: tensor<6x1x3x3xf32>)
    -> (tensor<4x6x3x3xf32>, tensor<4x6x1x1xf32>, tensor<4x6x1x1xf32>, tensor<4x6x2x2xf32>) {
  %a = tandem.conv2d %x, %w padding [1, 1, 1, 1] : tensor<4x6x3x3xf32>, tensor<6x6x3x3xf32> -> tensor<4x6x3x3xf32>
  %b = tandem.conv2d %x, %g groups 6 : tensor<4x6x3x3xf32>, tensor<6x1x3x3xf32> -> tensor<4x6x1x1xf32>
  %c = tandem.avg_pool2d %x kernel [2, 3] strides [2, 3] : tensor<4x6x3x3xf32> -> tensor<4x6x1x1xf32>
  %d = tandem.avg_pool2d %x kernel [3, 3] strides [2, 2] padding [1, 1, 1, 1] : tensor<4x6x3x3xf32> -> tensor<4x6x2x2xf32>
  return %a, %b, %c, %d : tensor<4x6x3x3xf32>, tensor<4x6x1x1xf32>, tensor<4x6x1x1xf32>, tensor<4x6x2x2xf32>
}
