// RUN: tandem-opt %s -tandem-functionalize | FileCheck %s --check-prefix=FUNCTIONALIZE
// RUN: tandem-opt %s -tandem-functionalize -tandem-build-joint | FileCheck %s --check-prefix=JOINT
// RUN: tandem-opt %s -tandem-functionalize -tandem-build-joint -tandem-optimize-joint | FileCheck %s --check-prefix=OPTIMIZE
// RUN: tandem-opt %s -tandem-functionalize -tandem-build-joint -tandem-optimize-joint -tandem-partition-joint | FileCheck %s --check-prefix=PARTITION
// RUN: tandem-opt %s -tandem-functionalize -tandem-build-joint=inference=true -tandem-optimize-joint -tandem-partition-joint | FileCheck %s --check-prefix=INFERENCE

// Stopped after any phase, the printed module is read again and goes on to the
// same end.
// RUN: tandem-opt %s -tandem-functionalize -tandem-build-joint -tandem-optimize-joint -tandem-partition-joint > %t.once
// RUN: tandem-opt %s -tandem-functionalize -mlir-print-debuginfo | tandem-opt -tandem-build-joint -mlir-print-debuginfo | tandem-opt -tandem-optimize-joint -mlir-print-debuginfo | tandem-opt -tandem-partition-joint > %t.stopped
// RUN: diff %t.once %t.stopped

// A convolution with batch norm, whose running mean is written in a no-grad
// region, and a classifier.
module @model attributes {tandem.phase = "capture", tandem.optimizer = "sgd:lr=0.1"} {
  func.func @graph(
      %x: tensor<2x1x4x4xf32> {tandem.role = #tandem.role<input "x">},
      %labels: tensor<2xi64> {tandem.role = #tandem.role<input "labels">},
      %k: tensor<3x1x3x3xf32> {tandem.role = #tandem.role<param "k" {requires_grad}>},
      %scale: tensor<3xf32> {tandem.role = #tandem.role<param "scale" {requires_grad}>},
      %bias: tensor<3xf32> {tandem.role = #tandem.role<param "bias" {requires_grad}>},
      %mean: !tandem.ref<3xf32> {tandem.role = #tandem.role<state "mean">},
      %variance: tensor<3xf32> {tandem.role = #tandem.role<state "variance">},
      %w: tensor<5x12xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">},
          tensor<2xi64> {tandem.role = #tandem.role<output "prediction">}) {
    %0 = tandem.conv2d %x, %k : tensor<2x1x4x4xf32>, tensor<3x1x3x3xf32> -> tensor<2x3x2x2xf32>
    %old = tandem.read %mean : !tandem.ref<3xf32>
    %1, %m, %v = tandem.batch_norm %0, %scale, %bias, %old, %variance {training} : (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x2x2xf32>, tensor<3xf32>, tensor<3xf32>)
    %new = tandem.add %old, %m {tandem.no_grad} : tensor<3xf32>
    tandem.write %new into %mean {tandem.no_grad} : tensor<3xf32>, !tandem.ref<3xf32>
    %2 = tandem.relu %1 : tensor<2x3x2x2xf32>
    %3 = tandem.reshape %2 to [2, 12] : tensor<2x3x2x2xf32> -> tensor<2x12xf32>
    %4 = tandem.linear %3, %w : (tensor<2x12xf32>, tensor<5x12xf32>) -> tensor<2x5xf32>
    %loss = tandem.cross_entropy %4, %labels : tensor<2x5xf32>, tensor<2xi64> -> tensor<f32>
    %p = tandem.argmax %4 dim 1 : tensor<2x5xf32> -> tensor<2xi64>
    return %loss, %p : tensor<f32>, tensor<2xi64>
  }
}

// FUNCTIONALIZE: tandem.phase = "functionalize"
// FUNCTIONALIZE-NOT: tandem.ref
// FUNCTIONALIZE: output "prediction">}, tensor<3xf32> {tandem.role = #tandem.role<update of "mean" {{.*}}>})
// FUNCTIONALIZE: tandem.batch_norm {{.*}} {training}
// FUNCTIONALIZE: %[[NEW:.*]] = tandem.add {{.*}} {tandem.no_grad}
// FUNCTIONALIZE: return %{{.*}}, %{{.*}}, %[[NEW]]

// JOINT: tandem.loss = "loss"
// JOINT: func.func @joint(
// JOINT-SAME: cotangent of "loss"
// JOINT-NOT: cotangent
// JOINT-SAME: update of "mean"
// JOINT-SAME: grad of "k"
// JOINT-SAME: grad of "scale"
// JOINT-SAME: grad of "bias"
// JOINT-SAME: grad of "w"
// JOINT-NOT: tandem.batch_norm
// JOINT-NOT: tandem.cross_entropy
// JOINT: tandem.conv2d {{.*}}"forward"
// JOINT-NOT: tandem.conv2d_input_grad
// JOINT: tandem.conv2d_filter_grad {{.*}}"backward"
// JOINT: func.func @evaluate(
// JOINT-NOT: update
// The mean of the batch is not computed: the running one is used.
// JOINT-NOT: tandem.reduce_sum %{{.*}} over [0, 2, 3]
// JOINT: return

// OPTIMIZE: tandem.phase = "optimize"
// OPTIMIZE: func.func @joint(
// OPTIMIZE-NOT: tandem.detach
// OPTIMIZE: func.func @evaluate(

// PARTITION: func.func @forward(
// PARTITION-NOT: cotangent
// PARTITION-NOT: tandem.pass
// PARTITION: func.func @backward(
// PARTITION-NOT: tandem.conv2d %
// PARTITION: tandem.conv2d_filter_grad
// PARTITION: func.func @update(
// PARTITION: func.func @step(
// PARTITION-SAME: output "loss"
// PARTITION-SAME: output "prediction"
// PARTITION-SAME: update of "mean"
// PARTITION-SAME: update of "k"
// PARTITION-SAME: update of "scale"
// PARTITION-SAME: update of "bias"
// PARTITION-SAME: update of "w"
// PARTITION: func.func @evaluate(

// INFERENCE-NOT: func.func @{{forward|backward|update|step|joint|graph}}
// INFERENCE: func.func @evaluate(
// INFERENCE-NOT: func.func
