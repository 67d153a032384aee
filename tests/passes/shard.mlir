// Programs of one process become those of a rank: types are those of pieces, and
// collectives stand where a value has to be elsewhere.
//
// RUN: tandem-opt %s -split-input-file -tandem-shard | FileCheck %s

// The batch is cut: the gradient of the weights is a sum over ranks.
#x = #tandem.role<input "x" {sharding = [["data"], []]}>
#w = #tandem.role<param "w" {requires_grad}>
module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // CHECK-LABEL: func.func @joint
  // CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
  // CHECK-SAME: %[[W:.*]]: tensor<5x3xf32>
  // CHECK-SAME: tandem.local
  func.func @joint(%x: tensor<4x3xf32> {tandem.role = #x},
                   %w: tensor<5x3xf32> {tandem.role = #w},
                   %dy: tensor<4x5xf32> {tandem.role = #tandem.role<cotangent of "y" {sharding = [["data"], []]}>})
      -> (tensor<4x5xf32> {tandem.role = #tandem.role<output "y" {sharding = [["data"], []]}>},
          tensor<5x3xf32> {tandem.role = #tandem.role<grad of "w">}) {
    // CHECK: %[[Y:.*]] = tandem.matmul %[[X]], %[[W]] {{.*}} : tensor<2x3xf32>, tensor<5x3xf32> -> tensor<2x5xf32>
    %y = tandem.matmul %x, %w {tandem.pass = "forward", transpose_rhs} : tensor<4x3xf32>, tensor<5x3xf32> -> tensor<4x5xf32>
    // CHECK: %[[P:.*]] = tandem.matmul {{.*}} : tensor<2x5xf32>, tensor<2x3xf32> -> tensor<5x3xf32>
    // CHECK: %[[G:.*]] = tandem.all_reduce sum %[[P]] over ["data"]
    %dw = tandem.matmul %dy, %x {tandem.pass = "backward", transpose_lhs} : tensor<4x5xf32>, tensor<4x3xf32> -> tensor<5x3xf32>
    // CHECK: return %[[Y]], %[[G]]
    return %y, %dw : tensor<4x5xf32>, tensor<5x3xf32>
  }
}

// -----

// What is whole and needed in pieces is computed in pieces: constants, indices
// by their global number; others are sliced.
module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // CHECK-LABEL: func.func @evaluate
  func.func @evaluate(%x: tensor<4xi64> {tandem.role = #tandem.role<input "x" {sharding = [["data"]]}>},
                      %z: tensor<4xi64> {tandem.role = #tandem.role<state "z">})
      -> (tensor<4xi64> {tandem.role = #tandem.role<output "y" {sharding = [["data"]]}>}) {
    // CHECK-DAG: tandem.constant dense<2> : tensor<2xi64>
    // CHECK-DAG: tandem.iota dim 0 : tensor<2xi64>
    // CHECK-DAG: tandem.rank_slice %{{.*}} dim 0 over ["data"] : tensor<2xi64> -> tensor<1xi64>
    // CHECK-DAG: tandem.rank_slice %arg1 dim 0 over ["data"] : tensor<4xi64> -> tensor<2xi64>
    %two = tandem.constant dense<2> : tensor<4xi64>
    %i = tandem.iota dim 0 : tensor<4xi64>
    %a = tandem.mul %x, %two : tensor<4xi64>
    %b = tandem.add %a, %i : tensor<4xi64>
    %c = tandem.add %b, %z : tensor<4xi64>
    return %c : tensor<4xi64>
  }
}

// -----

// A sum is made before it is repeated; a sort along the rows is of all of them.
module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // CHECK-LABEL: func.func @evaluate
  func.func @evaluate(%x: tensor<4x3xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"], []]}>})
      -> (tensor<4x3xf32> {tandem.role = #tandem.role<output "y" {sharding = [["data"], []]}>},
          tensor<4x3xf32> {tandem.role = #tandem.role<output "z">}) {
    // CHECK: %[[S:.*]] = tandem.reduce_sum %{{.*}} over [0] : tensor<2x3xf32> -> tensor<3xf32>
    // CHECK: tandem.all_reduce sum %[[S]] over ["data"] : tensor<3xf32> -> tensor<3xf32>
    %s = tandem.reduce_sum %x over [0] : tensor<4x3xf32> -> tensor<3xf32>
    %b = tandem.broadcast %s to [4, 3] along [1] : tensor<3xf32> -> tensor<4x3xf32>
    // CHECK: tandem.sub {{.*}} : tensor<2x3xf32>
    %y = tandem.sub %x, %b : tensor<4x3xf32>
    // CHECK: %[[A:.*]] = tandem.all_gather %arg0 dim 0 over ["data"] : tensor<2x3xf32> -> tensor<4x3xf32>
    // CHECK: tandem.sort %[[A]] dim 0
    %z, %places = tandem.sort %x dim 0 : tensor<4x3xf32> -> tensor<4x3xf32>, tensor<4x3xi64>
    return %y, %z : tensor<4x3xf32>, tensor<4x3xf32>
  }
}

// -----

// 5 rows over 2 ranks: both have 3, of which the last is padding on the second.
// A sum has zeros in its place; what is made of each row by itself keeps it.
module attributes {tandem.mesh = #tandem.mesh<data = 2>} {
  // CHECK-LABEL: func.func @evaluate
  // CHECK-SAME: %[[X:.*]]: tensor<3x2xf32> {{{.*}}input "x" {sharding = {{\[}}["data"], []], whole = array<i64: 5, 2>}
  // CHECK-SAME: output "y" {sharding = {{\[}}["data"], []], whole = array<i64: 5, 2>}
  func.func @evaluate(%x: tensor<5x2xf32> {tandem.role = #tandem.role<input "x" {sharding = [["data"], []]}>},
                      %z: tensor<5x2xf32> {tandem.role = #tandem.role<state "z">})
      -> (tensor<5x2xf32> {tandem.role = #tandem.role<output "y" {sharding = [["data"], []]}>},
          tensor<2xf32> {tandem.role = #tandem.role<output "s">},
          tensor<5x2xf32> {tandem.role = #tandem.role<output "all">}) {
    // CHECK: %[[P:.*]] = tandem.pad %{{.*}} low [0, 0] high [1, 0] {{.*}} -> tensor<6x2xf32>
    // CHECK: %[[Z:.*]] = tandem.rank_slice %[[P]] dim 0 over ["data"]
    // CHECK: %[[Y:.*]] = tandem.add %[[X]], %[[Z]] : tensor<3x2xf32>
    %y = tandem.add %x, %z : tensor<5x2xf32>
    // CHECK: %[[N:.*]] = tandem.constant dense<5> : tensor<3xi64>
    // CHECK: %[[IS:.*]] = tandem.compare lt %{{.*}}, %[[N]]
    // CHECK: %[[M:.*]] = tandem.select %{{.*}}, %[[Y]], %{{.*}} : tensor<3x2xi1>, tensor<3x2xf32>
    // CHECK: %[[S:.*]] = tandem.reduce_sum %[[M]]
    // CHECK: tandem.all_reduce sum %[[S]] over ["data"]
    %s = tandem.reduce_sum %y over [0] : tensor<5x2xf32> -> tensor<2xf32>
    // CHECK: %[[G:.*]] = tandem.all_gather %[[Y]] dim 0 over ["data"] : tensor<3x2xf32> -> tensor<6x2xf32>
    // CHECK: tandem.slice %[[G]] from [0, 0] to [5, 2]
    return %y, %s, %y : tensor<5x2xf32>, tensor<2xf32>, tensor<5x2xf32>
  }
}
