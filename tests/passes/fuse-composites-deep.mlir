// A mask that follows from positions by 100,000 ops is not looked through to its
// end, and remains one that is not known; by 200 ops it is. (Asking op after op,
// each within the one before, overflowed the stack.)
// RUN: awk '/^ *LINKS/ {for (i = 1; i <= 100000; ++i) print "%v" i " = tandem.maximum %v" i - 1 ", %zero : tensor<2x1x4x4xi64>"; next} {gsub(/LAST/, "%v100000"); print}' %s | tandem-opt --tandem-fuse-composites | FileCheck %s
// RUN: awk '/^ *LINKS/ {for (i = 1; i <= 200; ++i) print "%v" i " = tandem.maximum %v" i - 1 ", %zero : tensor<2x1x4x4xi64>"; next} {gsub(/LAST/, "%v200"); print}' %s | tandem-opt --tandem-fuse-composites | FileCheck %s --check-prefix=KNOWN
// CHECK-NOT: tandem.attention_forward
// KNOWN: tandem.attention_forward {{.*}} {causal
module attributes {tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @graph(%q: tensor<2x1x4x8xf32> {tandem.role = #tandem.role<input "q">}) -> (tensor<2x1x4x8xf32> {tandem.role = #tandem.role<output "y">}) {
    %zero = tandem.constant dense<0> : tensor<2x1x4x4xi64>
    %row = tandem.iota dim 2 : tensor<2x1x4x4xi64>
    %v0 = tandem.iota dim 3 : tensor<2x1x4x4xi64>
    LINKS
    %mask = tandem.compare le LAST, %row : tensor<2x1x4x4xi64>
    %y = tandem.attention %q, %q, %q, %mask : tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x4xi1> -> tensor<2x1x4x8xf32>
    return %y : tensor<2x1x4x8xf32>
  }
}
