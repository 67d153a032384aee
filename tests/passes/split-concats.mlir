// RUN: tandem-opt %s -split-input-file -tandem-split-concats | FileCheck %s

// A convolution of one tap sums over planes, piece by piece, through pooling.
// CHECK-LABEL: func.func @fire
// CHECK-NOT: tandem.concat
// CHECK: %[[A:.*]], %{{.*}} = tandem.max_pool2d %{{.*}} kernel [3, 3] strides [2, 2] {tandem.pass = "forward"} : tensor<2x8x9x9xf32> -> tensor<2x8x4x4xf32>, tensor<2x8x4x4xi32>
// CHECK: %[[B:.*]], %{{.*}} = tandem.max_pool2d %{{.*}} kernel [3, 3] strides [2, 2] {tandem.pass = "forward"} : tensor<2x4x9x9xf32> -> tensor<2x4x4x4xf32>, tensor<2x4x4x4xi32>
// CHECK: %[[WA:.*]] = tandem.slice %{{.*}} from [0, 0, 0, 0] to [3, 8, 1, 1]
// CHECK: %[[PA:.*]] = tandem.conv2d %[[A]], %[[WA]] strides [2, 2] {tandem.pass = "forward"}
// CHECK: %[[WB:.*]] = tandem.slice %{{.*}} from [0, 8, 0, 0] to [3, 12, 1, 1]
// CHECK: %[[PB:.*]] = tandem.conv2d %[[B]], %[[WB]] strides [2, 2] {tandem.pass = "forward"}
// CHECK: %[[Y:.*]] = tandem.add %[[PA]], %[[PB]] {tandem.pass = "forward", tandem.save}
// CHECK: return %[[Y]]
func.func @fire(%a: tensor<2x8x9x9xf32>, %b: tensor<2x4x9x9xf32>, %w: tensor<3x12x1x1xf32>) -> tensor<2x3x2x2xf32> {
  %c = tandem.concat %a, %b dim 1 {tandem.pass = "forward"} : tensor<2x8x9x9xf32>, tensor<2x4x9x9xf32> -> tensor<2x12x9x9xf32>
  %p, %i = tandem.max_pool2d %c kernel [3, 3] strides [2, 2] {tandem.pass = "forward"} : tensor<2x12x9x9xf32> -> tensor<2x12x4x4xf32>, tensor<2x12x4x4xi32>
  %y = tandem.conv2d %p, %w strides [2, 2] {tandem.pass = "forward", tandem.save} : tensor<2x12x4x4xf32>, tensor<3x12x1x1xf32> -> tensor<2x3x2x2xf32>
  return %y : tensor<2x3x2x2xf32>
}

// -----

// Not where sums are not smaller, taps are several, types narrow, something else
// reads, or saves, what is concatenated, or a piece is empty.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-6: tandem.concat
func.func @others(%a: tensor<2x8x9x9xf32>, %e: tensor<2x0x9x9xf32>, %few: tensor<3x8x1x1xf32>, %h: tensor<2x8x9x9xf16>, %wide: tensor<12x16x1x1xf32>, %taps: tensor<3x16x3x3xf32>,
                  %narrow: tensor<3x16x1x1xf16>, %w: tensor<3x16x1x1xf32>)
    -> (tensor<2x12x9x9xf32>, tensor<2x3x7x7xf32>, tensor<2x3x9x9xf16>, tensor<2x3x9x9xf32>, tensor<2x16x9x9xf32>, tensor<2x3x9x9xf32>, tensor<2x3x9x9xf32>) {
  %c0 = tandem.concat %a, %a dim 1 : tensor<2x8x9x9xf32>, tensor<2x8x9x9xf32> -> tensor<2x16x9x9xf32>
  %y0 = tandem.conv2d %c0, %wide : tensor<2x16x9x9xf32>, tensor<12x16x1x1xf32> -> tensor<2x12x9x9xf32>
  %c1 = tandem.concat %a, %a dim 1 : tensor<2x8x9x9xf32>, tensor<2x8x9x9xf32> -> tensor<2x16x9x9xf32>
  %y1 = tandem.conv2d %c1, %taps : tensor<2x16x9x9xf32>, tensor<3x16x3x3xf32> -> tensor<2x3x7x7xf32>
  %c2 = tandem.concat %h, %h dim 1 : tensor<2x8x9x9xf16>, tensor<2x8x9x9xf16> -> tensor<2x16x9x9xf16>
  %y2 = tandem.conv2d %c2, %narrow : tensor<2x16x9x9xf16>, tensor<3x16x1x1xf16> -> tensor<2x3x9x9xf16>
  %c3 = tandem.concat %a, %a dim 1 : tensor<2x8x9x9xf32>, tensor<2x8x9x9xf32> -> tensor<2x16x9x9xf32>
  %y3 = tandem.conv2d %c3, %w : tensor<2x16x9x9xf32>, tensor<3x16x1x1xf32> -> tensor<2x3x9x9xf32>
  %c4 = tandem.concat %a, %a dim 1 {tandem.save} : tensor<2x8x9x9xf32>, tensor<2x8x9x9xf32> -> tensor<2x16x9x9xf32>
  %y4 = tandem.conv2d %c4, %w : tensor<2x16x9x9xf32>, tensor<3x16x1x1xf32> -> tensor<2x3x9x9xf32>
  %c5 = tandem.concat %a, %e dim 1 : tensor<2x8x9x9xf32>, tensor<2x0x9x9xf32> -> tensor<2x8x9x9xf32>
  %y5 = tandem.conv2d %c5, %few : tensor<2x8x9x9xf32>, tensor<3x8x1x1xf32> -> tensor<2x3x9x9xf32>
  return %y0, %y1, %y2, %y3, %c3, %y4, %y5 : tensor<2x12x9x9xf32>, tensor<2x3x7x7xf32>, tensor<2x3x9x9xf16>, tensor<2x3x9x9xf32>, tensor<2x16x9x9xf32>, tensor<2x3x9x9xf32>, tensor<2x3x9x9xf32>
}
