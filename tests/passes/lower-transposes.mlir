// RUN: tandem-opt %s -tandem-lower-transposes | FileCheck %s

// CHECK-LABEL: func.func @transposes
// CHECK-NOT: vector.transpose
// CHECK: vector.shuffle
// CHECK-NOT: vector.transpose
func.func @transposes(%x: vector<16x16xf32>) -> vector<16x16xf32> {
  %y = vector.transpose %x, [1, 0] : vector<16x16xf32> to vector<16x16xf32>
  return %y : vector<16x16xf32>
}
