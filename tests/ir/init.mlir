// A6: a misspelt kind of `init` meant zeros, and nothing said so; unknown keys,
// and a constant without a value, passed too.
//
// RUN: tandem-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected the kind in 'init' of 'param "w"' to be one of 'constant', 'uniform', 'normal', 'counter', 'seed', but got 'unifrom' (did you mean 'uniform'?)}}
#w = #tandem.role<param "w" {init = {kind = "unifrom", low = -0.2, high = 0.2}}>

// -----

// expected-error@+2 {{unknown key 'vlaue' in 'init' of 'param "w"', of the kind 'constant' (did you mean 'value'?)}}
// expected-error@+1 {{expected 'init' of 'param "w"', of the kind 'constant', to have a finite number 'value'}}
#w = #tandem.role<param "w" {init = {kind = "constant", vlaue = 3.0}}>

// -----

// expected-error@+1 {{to have a finite number 'std', but got "wide"}}
#w = #tandem.role<param "w" {init = {kind = "normal", mean = 0, std = "wide"}}>

// -----

// expected-error@+1 {{expected 'low' of 'init' of 'param "w"' to be at most 'high', 0.1, but got 0.5}}
#w = #tandem.role<param "w" {init = {kind = "uniform", low = 0.5, high = 0.1}}>

// -----

// expected-error@+1 {{expected 'std' of 'init' of 'param "w"' to be at least 0, but got -1}}
#w = #tandem.role<param "w" {init = {kind = "normal", mean = 0.0, std = -1.0}}>

// -----

// expected-error@+1 {{expected 'stream' of 'init' of 'param "w"' to be an integer from 0 to 2^32 - 1, but got -3}}
#w = #tandem.role<param "w" {init = {kind = "counter", stream = -3, scale = 1.0}}>

// -----

// expected-error@+1 {{expected 'init' of 'param "w"' to be a dictionary with a string 'kind', but got 3 : i64}}
#w = #tandem.role<param "w" {init = 3}>

// -----

// expected-error@+1 {{expected 'high' of role 'input "x"' to be an i64 of at least 1}}
#x = #tandem.role<input "x" {high = 0}>

// -----

// expected-error@+1 {{expected 'requires_grad' of role 'param "w"' to be a unit attribute, there or not}}
#w = #tandem.role<param "w" {requires_grad = false}>

// -----

// expected-error@+1 {{unknown property 'require_grad' of role 'param "w"' (did you mean 'requires_grad'?)}}
#w = #tandem.role<param "w" {require_grad}>

// -----

// What hangs on the type.
#w = #tandem.role<param "w" {init = {kind = "constant", value = 1.0e+39}}>
#n = #tandem.role<state "n" {init = {kind = "constant", value = 1.5}}>
#m = #tandem.role<state "m" {init = {kind = "uniform", low = 0, high = 9}}>
#s = #tandem.role<state "s" {init = {kind = "seed"}}>
#f = #tandem.role<input "f" {high = 3}>
#y = #tandem.role<output "y">
// expected-error@+5 {{expected 'value' of 'init' of 'param "w"' to be finite in 'f32', but got}}
// expected-error@+4 {{expected 'value' of 'init' of 'state "n"' to be a number of 'i64', but got 1.5}}
// expected-error@+3 {{expected 'init' of 'state "m"' to be of the kind 'constant' for 'i32' elements, but got 'uniform'}}
// expected-error@+2 {{expected 'init' of 'state "s"', of the kind 'seed', to be of i64 elements, but got 'f32'}}
// expected-error@+1 {{expected 'input "f"' with 'high' to have integer elements, but got 'f32'}}
func.func @types(%w: tensor<4xf32> {tandem.role = #w}, %n: tensor<i64> {tandem.role = #n}, %m: tensor<i32> {tandem.role = #m}, %s: tensor<f32> {tandem.role = #s}, %f: tensor<f32> {tandem.role = #f}) -> (tensor<4xf32> {tandem.role = #y}) {
  return %w : tensor<4xf32>
}
