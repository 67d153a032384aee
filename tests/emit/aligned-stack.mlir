// Vectors that a function has no registers for were kept at multiples of 16
// bytes, across lines and pages. An aligned stack is made by `and rsp, -64`.
// REQUIRES: x86
// RUN: tandem compile %s --inference --target=cpu:x86-64-v4 -o %t.tdm
// RUN: %python -c "import sys; sys.exit(bytes.fromhex('4883e4c0') not in open('%t.tdm', 'rb').read())"
module @m attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<4x16x8x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<16x16x3x3xf32> {tandem.role = #tandem.role<param "w">})
      -> (tensor<4x16x8x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.conv2d %x, %w padding [1, 1, 1, 1] : tensor<4x16x8x8xf32>, tensor<16x16x3x3xf32> -> tensor<4x16x8x8xf32>
    return %y : tensor<4x16x8x8xf32>
  }
}
