// RUN: tandem-opt %s -split-input-file -tandem-decompose-composites | FileCheck %s

// What a composite becomes has its tags; composites in it go as well.
// CHECK-LABEL: func.func @graph
// CHECK-NOT: tandem.softmax
// CHECK: tandem.reduce_max {{.*}}tandem.save
// CHECK: tandem.exp {{.*}}tandem.save
// CHECK: tandem.reduce_sum {{.*}}tandem.save
// CHECK: return
func.func @graph(%x: tensor<3x4xf32> {tandem.role = #tandem.role<input "x">})
    -> (tensor<3x4xf32> {tandem.role = #tandem.role<output "y">}) {
  %y = tandem.softmax %x dim 1 {tandem.save} : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
