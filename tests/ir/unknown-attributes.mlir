// A5: misspelt attributes without a prefix were ignored: `reducton = "sum"` and
// a label_smoothing that nobody has gave the loss of neither.
//
// RUN: tandem-opt %s --split-input-file --verify-diagnostics

#x = #tandem.role<input "x">
#y = #tandem.role<output "y">
func.func @ops(%x: tensor<4x8xf32> {tandem.role = #x}) -> (tensor<4x8xf32> {tandem.role = #y}) {
  // expected-error@+1 {{'tandem.relu' op has no attribute 'save' (did you mean 'tandem.save'?)}}
  %a = tandem.relu %x {save} : tensor<4x8xf32>
  // expected-error@+2 {{'tandem.exp' op has no attribute 'inplace'; it has none}}
  // expected-error@+1 {{'tandem.exp' op has no attribute 'recompute' (did you mean 'tandem.recompute'?)}}
  %b = tandem.exp %a {inplace, recompute = true} : tensor<4x8xf32>
  // expected-error@+1 {{'tandem.softmax' op has no attribute 'dims' (did you mean 'dim'?)}}
  %c = tandem.softmax %b dim 1 {dims = array<i64: 1>} : tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

#x = #tandem.role<input "x">
#labels = #tandem.role<input "labels" {high = 8 : i64}>
#y = #tandem.role<output "loss">
func.func @loss(%x: tensor<4x8xf32> {tandem.role = #x}, %l: tensor<4xi64> {tandem.role = #labels}) -> (tensor<f32> {tandem.role = #y}) {
  // expected-error@+2 {{'tandem.cross_entropy' op has no attribute 'label_smoothing'; it has}}
  // expected-error@+1 {{'tandem.cross_entropy' op has no attribute 'reducton' (did you mean 'reduction'?)}}
  %loss = tandem.cross_entropy %x, %l {label_smoothing = 0.1, reducton = "sum"} : tensor<4x8xf32>, tensor<4xi64> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

#x = #tandem.role<input "x">
#y = #tandem.role<output "y">
// expected-error@+1 {{'func.func' op has no attribute 'inlne'}}
func.func @functions(%x: tensor<4xf32> {tandem.role = #x}) -> (tensor<4xf32> {tandem.role = #y}) attributes {inlne} {
  %a = tandem.relu %x : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @prefixed(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{unknown attribute 'tandem.svae' (did you mean 'tandem.save'?)}}
  %a = tandem.relu %x {tandem.svae} : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// expected-error@+1 {{'tandem.plan' belongs on a function}}
module attributes {tandem.plan = {arena_bytes = 0 : i64}} {
}

// -----

// expected-error@+1 {{'tandem.save' belongs on an op}}
module attributes {tandem.save} {
}
