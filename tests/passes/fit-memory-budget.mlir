// RUN: tandem-opt %S/partition-budget.mlir -tandem-choose-saved > %t.mlir
// RUN: tandem-opt %t.mlir -tandem-fit-memory-budget=budget=1 | FileCheck %s --check-prefixes=CHECK,FAST
// RUN: tandem-opt %t.mlir -tandem-fit-memory-budget=budget=0 | FileCheck %s --check-prefixes=CHECK,LEAST
// RUN: not tandem-opt %t.mlir -tandem-fit-memory-budget=budget=1000 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not tandem-opt %t.mlir -tandem-fit-memory-budget=budget=1.5 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not tandem-opt %t.mlir -tandem-fit-memory-budget 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tandem-opt %S/partition-budget.mlir -tandem-fit-memory-budget=budget=1 2>&1 | FileCheck %s --check-prefix=UNCHOSEN

// Six tangents are marked, for the fastest step; with less memory some of them
// are computed again, and their marks go.
// CHECK: module @row
// CHECK-SAME: tandem.partition = {chain = [{flops = {{.*}}], seconds = {{[^,]*}} : f64}
// CHECK: func.func @joint
// CHECK-SAME: tandem.saved_by = "memory-budget"
// FAST-COUNT-6: tandem.tanh {{.*}} tandem.saved = "
// LEAST: tandem.saved = "the memory budget has room for it"
// LEAST: tandem.tanh {{.*}} {tandem.pass = "forward"} :
// SMALL: unsupported --memory-budget=1000: a step needs at least {{[0-9]+}} bytes ({{.*}} MiB), but the budget is 1000 bytes (1000 bytes)
// WRONG: expected --memory-budget to be a number from 0 to 1, or bytes such as 500MB or 6GiB, but got '1.5'
// NONE: expected --memory-budget to be a number from 0 to 1, or bytes such as 500MB or 6GiB, but got ''
// UNCHOSEN: expected 'joint' to say 'tandem.saved_by': nobody has chosen what is saved (tandem-choose-saved)
