// RUN: not tandem-opt %s --tandem-plan-programs 2>&1 | FileCheck %s
// RUN: not tandem-opt %s --tandem-lower-to-cpu 2>&1 | FileCheck %s --check-prefix=LOWER

// CHECK: expected phase 'partition' but got 'joint'
// LOWER: expected phase 'plan' but got 'joint'
module @m attributes {tandem.phase = "joint"} {
}
