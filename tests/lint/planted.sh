#!/usr/bin/env bash
# tests/lint/planted.sh LINT [FILE...]: the lint passes on a clean tree and
# finds each planted violation, where it is. A lint that finds nothing because
# it looks at nothing would fail here.
#
# For 'linkage' FILE is a program that needs libz.so; for 'rooms', two archives that
# use each other; for 'hardening' they are the compiler of C, its options and the
# linker's.
set -euo pipefail

lint=$1
lints=$(cd "$(dirname "$0")/../../tools/lint" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# put FILE: writes standard input to FILE of the tree.
put() {
  mkdir -p "$tree/$(dirname "$1")"
  cat >"$tree/$1"
}

# lines COUNT TEXT: COUNT lines of TEXT.
lines() {
  awk -v count="$1" -v text="$2" \
    'BEGIN { for (i = 0; i < count; ++i) print text }'
}

# run_lint: leaves the output in `output`, the exit code in `code`.
run_lint() {
  code=0
  output=$("$lints/$lint" "$tree" 2>&1) || code=$?
  if [ "$code" -eq 77 ]; then
    echo "$output"
    exit 77
  fi
}

expect_clean() {
  run_lint
  if [ "$code" -ne 0 ]; then
    echo "expected '$lint' to pass on a clean tree but got $code:"
    echo "$output"
    failures=$((failures + 1))
  fi
}

# expect_found PLACE: exactly one finding, at PLACE (FILE:LINE); then the file
# is removed.
expect_found() {
  run_lint
  if [ "$code" -ne 1 ] ||
    [ "$(grep -c "^[^ :]*:[0-9]*: " <<<"$output")" -ne 1 ] ||
    ! grep -q -- "^$1: " <<<"$output"; then
    echo "expected '$lint' to find exactly '$1' but got $code:"
    echo "$output"
    failures=$((failures + 1))
  fi
  rm -- "$tree/${1%:*}"
}

case $lint in
  layout)
    put ir/Good.cpp <<<'// Good.'
    put README.md <<<'# Tandem'
    expect_clean
    put left.log <<<'text'
    expect_found left.log:1
    put --help <<<'text'
    expect_found --help:1
    ;;
  includes)
    put runtime/io/Npz.cpp <<'END'
#include "runtime/artifact/DType.h"
#include "zlib.h"
#include <nlohmann/json.hpp>
#include <vector>
END
    put runtime/tensor/Tensor.cpp <<<'#include "runtime/device/Backend.h"'
    put ir/Dialect.cpp <<'END'
#include "ir/Dialect.h.inc"
#include "mlir/IR/Dialect.h"
END
    put tools/tandem/Main.cpp <<<'#include "runtime/model/Model.h"'
    put tests/runtime/ModelTest.cpp <<<'#include "compiler/Driver.h"'
    expect_clean
    put runtime/model/Model.cpp < <(printf '%s\n' '#include <vector>' \
      '#include "llvm/ADT/SmallVector.h"')
    expect_found runtime/model/Model.cpp:2
    put runtime/io/Npy.h <<<'#include <mlir/IR/Value.h>'
    expect_found runtime/io/Npy.h:1
    put runtime/tensor/Tensor.cpp <<<'#include "runtime/model/Model.h"'
    expect_found runtime/tensor/Tensor.cpp:1
    put runtime/graph/Task.cpp \
      <<<'#include "runtime/graph/distributed/Worker.h"'
    expect_found runtime/graph/Task.cpp:1
    put runtime/graph/distributed/Worker.cpp <<<'#include <mpi.h>'
    expect_found runtime/graph/distributed/Worker.cpp:1
    put runtime/graph/distributed/mpi/Mpi.cpp \
      <<<'#include "runtime/tensor/Tensor.h"'
    expect_found runtime/graph/distributed/mpi/Mpi.cpp:1
    put runtime/artifact/Reader.cpp <<<'#include "runtime/model/Model.h"'
    expect_found runtime/artifact/Reader.cpp:1
    put passes/plan/Plan.cpp <<<'#  include "compiler/Driver.h"'
    expect_found passes/plan/Plan.cpp:1
    put passes/plan/Plan.cpp <<<'#include "passes/partition/Cost.h"'
    expect_found passes/plan/Plan.cpp:1
    put passes/partition/Cut.cpp <<<'#include "passes/plan/Plan.h"'
    put ir/ops/Shape.td <<<'include "passes/Passes.td"'
    expect_found ir/ops/Shape.td:1
    put compiler/emit/Emit.cpp <<<'#include "runtime/Executor.h"'
    expect_found compiler/emit/Emit.cpp:1
    put cuda/Device.cpp <<<'#include <cuda.h>'
    expect_found cuda/Device.cpp:1
    put tools/tandem/Main.cpp <<<'#include "tests/gradients/Rows.h"'
    expect_found tools/tandem/Main.cpp:1
    put ir/Roles.cpp <<<'#include "Roles.h"'
    expect_found ir/Roles.cpp:1
    put tools/tandem-run/Main.cpp <<<'#include "compiler/Driver.h"'
    expect_found tools/tandem-run/Main.cpp:1
    ;;
  facts)
    put passes/Good.cpp <<'END'
auto a = role.getProperty<TypeAttr>(RoleAttr::kGradType);
auto b = dict.getAs<StringAttr>(key::kOf);
loop->setAttr("loop_annotation", hint);
auto c = module.lookupSymbol<FuncOp>("forward");
END
    put compiler/import/Good.cpp <<<'auto a = b.getNamedAttr("dim", size);'
    put ir/Good.cpp <<<'auto a = dict.getAs<StringAttr>("of");'
    put tests/Good.cpp <<<'role.has("alias");'
    expect_clean
    put passes/plan/Bad.cpp <<<'auto a = role.has("alias");'
    expect_found passes/plan/Bad.cpp:1
    put passes/plan/Next.cpp < <(printf 'auto a = role.getAs<X>(\n    "alias");\n')
    expect_found passes/plan/Next.cpp:2
    put compiler/emit/Bad.cpp <<<'op->setAttr("tandem.phase", now);'
    expect_found compiler/emit/Bad.cpp:1
    put tools/tandem/Bad.cpp <<<'auto a = op->getAttrOfType<mlir::ArrayAttr>("needs");'
    expect_found tools/tandem/Bad.cpp:1
    ;;
  definitions)
    put ir/Good.h <<'END'
namespace tandem {
class Point;
struct Point final {
  struct Inner {};
};
namespace plan {
class Point : public tandem::Point {
};
} // namespace plan
} // namespace tandem
END
    put ir/Good.cpp <<'END'
namespace tandem {
struct Point::Inner {
};
namespace {
struct Local {};
} // namespace
class Point;
} // namespace tandem
END
    put tests/ir/OneTest.cpp < <(printf 'struct Case {\n};\n')
    put tests/ir/OtherTest.cpp < <(printf 'struct Case {\n};\n')
    put passes/Local.cpp <<'END'
namespace tandem {
namespace {
struct Local {
};
} // namespace
} // namespace tandem
END
    expect_clean
    put tools/Curve.h <<'END'
namespace tandem {

struct Point {
};
} // namespace tandem
END
    expect_found tools/Curve.h:3
    put tools/Plan.h <<'END'
namespace tandem::plan {
class Point
    : public Base {
};
} // namespace tandem::plan
END
    expect_found tools/Plan.h:2
    put tools/Test.h < <(printf 'enum class Case { A };\n')
    rm -- "$tree/tests/ir/OtherTest.cpp"
    expect_found tools/Test.h:1
    ;;
  sizes)
    { echo '// At the limit.'; lines 599 'int x;'; } | put ir/Good.cpp
    put tools/good.sh < <(printf '#!/bin/sh\n# Does nothing.\n')
    expect_clean
    { echo '// Too long.'; lines 600 'int x;'; } | put ir/Long.cpp
    expect_found ir/Long.cpp:1
    { echo '# Too long.'; lines 600 true; } | put tools/long
    expect_found tools/long:1
    put ir/Silent.h <<<'#pragma once'
    expect_found ir/Silent.h:1
    ;;
  words)
    put ir/Good.cpp <<'END'
// The worker's hackney todos; mktemp XXXXXX; 'frame/work/x'; version 10.0.1.
END
    expect_clean
    put ir/A.cpp < <(printf '//\n// TO%s: later\n' DO)
    expect_found ir/A.cpp:2
    put ir/B.h < <(printf '// FIX%s\n' ME)
    expect_found ir/B.h:1
    put tools/c.sh < <(printf '# XX%s\n' X)
    expect_found tools/c.sh:1
    put docs/d.md < <(printf 'a HA%s here\n' CK)
    expect_found docs/d.md:1
    put ir/E.cpp < <(printf '// scalar f%s now\n' or)
    expect_found ir/E.cpp:1
    put ir/F.cpp < <(printf 'auto f = "/wor%s/shared/x";\n' k)
    expect_found ir/F.cpp:1
    put tools/g < <(printf 'curl https://a-b.pkg.de%s/x\n' v)
    expect_found tools/g:1
    put tools/h < <(printf 'host 192.16%s.1.2\n' 8)
    expect_found tools/h:1
    ;;
  format)
    cp "$lints/../../.clang-format" "$tree/"
    put ir/Good.cpp < <(printf 'int f(int x) { return x; }\n')
    expect_clean
    put ir/Bad.cpp < <(printf 'int f(int x) { return x; }\nint  y;\n')
    expect_found ir/Bad.cpp:2
    ;;
  doc-links)
    put docs/b.md < <(printf '# Words & `names`\n')
    put README.md <<'END'
[a](docs/b.md) [b](docs) [c](docs/b.md#words--names) [d](https://x.org/none)
`[e](not/a/link)`
END
    expect_clean
    put docs/c.md < <(printf 'text\n[a](../docs/b.md) [b](none.md)\n')
    expect_found docs/c.md:2
    put docs/c.md < <(printf '[a](b.md#nowhere)\n')
    expect_found docs/c.md:1
    ;;
  paths)
    put passes/plan/Fuse.cpp <<'END'
//===- Fuse.cpp - kernels of several ops (plan/Fuse.h) --------------------===//
//
// passes/plan/Fuse, passes/plan/F*, passes/plan/, tests/FOLDER/NAME.mlir,
// mlir/IR/Value.h; llvm/ADT/None.h; https://x.org/docs/none.md; ir/ops/<F>.td.
int passes; // of passes/plan
END
    put passes/plan/Fuse.h <<<'const char *x = "docs/none.md";'
    put docs/a.md < <(printf '`passes/plan/Fuse.h` `plan/Fuse.h` `Fuse.h`\n```\ntools/none\n```\n')
    put CHANGELOG.md <<<'What passes/gone/Gone.cpp did.'
    expect_clean
    put docs/b.md < <(printf 'text\nsee `passes/plan/Gone.cpp`\n')
    expect_found docs/b.md:2
    put docs/b.md <<<'see plan/Gone.h.'
    expect_found docs/b.md:1
    put ir/A.cpp < <(printf '//\n// As Gone.h says.\n')
    expect_found ir/A.cpp:2
    put ir/A.td < <(printf 'x; // tests/gone/*.mlir\n')
    expect_found ir/A.td:1
    put tools/run < <(printf '#!/bin/sh\n# Runs tools/gone.\n')
    expect_found tools/run:2
    ;;
  passes)
    put tests/passes/one-pass.mlir <<<'// RUN: tandem-opt %s -tandem-one-pass=x=1'
    put tests/plan/other-pass.mlir <<<'// RUN: tandem-opt --tandem-other-pass'
    one='def OnePass : ModulePass<"tandem-one-pass"> {
  let summary = "Does one thing";
  let description = [{ And no other. }];
}'
    other='def OtherPass : Pass<"tandem-other-pass", "::mlir::ModuleOp"> {
  let summary = "Does another";
  let description = [{ After the first. }];
}'
    put passes/Passes.td <<<"$one"$'\n'"$other"
    expect_clean
    # Without a test; with one of another pass; without summary or description.
    put passes/Passes.td <<<"$one"$'\n'"${other//other-pass/third-pass}"
    expect_found passes/Passes.td:5
    put passes/Passes.td <<<"$one"$'\n'"$other"
    put tests/passes/one-pass.mlir <<<'// RUN: tandem-opt -tandem-one-pass-more'
    expect_found tests/passes/one-pass.mlir:1
    put tests/passes/one-pass.mlir <<<'// RUN: tandem-opt %s -tandem-one-pass=x=1'
    put passes/Passes.td <<<"${one/summary/statistics}"
    expect_found passes/Passes.td:1
    put passes/Passes.td <<<"${one/description/statistics}"
    expect_found passes/Passes.td:1
    ;;
  linkage)
    code=0
    output=$("$lints/linkage" "$2" 1000) || code=$?
    if [ "$code" -ne 1 ] || ! grep -q "needs 'libz.so" <<<"$output" ||
      ! grep -q 'expected at most 1000 bytes' <<<"$output"; then
      echo "expected 'linkage' to refuse '$2' but got $code: $output"
      failures=1
    fi
    ;;
  hardening)
    # build SUFFIX OPTION...: Hardened.c with these options behind tandem_harden's.
    # What is left out is said the other way round, since compilers of
    # distributions have defaults.
    source=$(dirname "$0")/Hardened.c compiler=$2
    IFS=' ' read -ra flags <<<"$3 -D_FORTIFY_SOURCE=3"
    IFS=' ' read -ra links <<<"-Wl,-z,relro,-z,noexecstack $4"
    build() {
      "$compiler" -O2 -fPIC "${flags[@]}" "${@:2}" "$source" -o "$tree/$1" "${links[@]}" "${@:2}"
    }
    # missing WHAT OPTION...: the lint finds WHAT, and it alone, with the options.
    missing() {
      code=0
      build library.so -shared "${@:2}"
      output=$("$lints/hardening" --code "$tree/library.so") || code=$?
      if [ "$code" -ne 1 ] || [ "$(wc -l <<<"$output")" -ne 1 ] || ! grep -q -e "$1" <<<"$output"; then
        echo "expected 'hardening' to miss '$1' with ${*:2} but got $code: $output"
        failures=$((failures + 1))
      fi
    }
    build library.so -shared
    run_lint() { code=0; output=$("$lints/hardening" --code "$tree/library.so") || code=$?; }
    expect_clean
    missing '-z now' -Wl,-z,lazy
    missing '-z relro' -Wl,-z,norelro
    missing '-z noexecstack' -Wl,-z,execstack
    missing 'written and run' -DHARDENED_RWX
    missing '-fstack-protector-strong' -fno-stack-protector
    missing '-D_FORTIFY_SOURCE' -U_FORTIFY_SOURCE
    case $3 in *-fstack-clash-protection*)
      missing '-fstack-clash-protection' -fno-stack-clash-protection ;;
    esac
    case $3 in *-fcf-protection*)
      missing '-fcf-protection' -fcf-protection=none ;;
    esac
    # Programs: where they lie, and what a variable begins with.
    build program -DHARDENED_MAIN -pie
    "$lints/hardening" --code "$tree/program" >/dev/null || { echo 'expected a program to be clean'; failures=1; }
    "$tree/program" || { echo 'expected variables to begin as zero'; failures=1; }
    build program -DHARDENED_MAIN -no-pie -fno-pie
    output=$("$lints/hardening" "$tree/program") || true
    if ! grep -q '(PIE)' <<<"$output"; then echo "expected 'hardening' to miss PIE but got $output"; failures=1; fi
    case $3 in *-ftrivial-auto-var-init*)
      build program -DHARDENED_MAIN -ftrivial-auto-var-init=uninitialized
      if "$tree/program"; then echo 'expected variables to begin as anything without -ftrivial-auto-var-init'; failures=1; fi ;;
    esac
    # The mark of the linker.
    IFS=' ' read -ra links <<<"-Wl,-z,relro,-z,noexecstack ${4/-Wl,-z,shstk/}"
    case $4 in *shstk*) missing '-z shstk' -DHARDENED ;; esac
    ;;
  rooms)
    # rooms_of LINE...: the lint on this list.
    rooms_of() {
      code=0
      printf '%s\n' "$@" >"$tree/libraries.txt"
      output=$("$lints/rooms" "$tree/libraries.txt" 2>&1) || code=$?
    }
    # expect_use USER DEFINER: one finding.
    expect_use() {
      if [ "$code" -ne 1 ] || [ "$(grep -c ' uses ' <<<"$output")" -ne 1 ] ||
        ! grep -Eq "^$1: .* uses $2\$" <<<"$output"; then
        echo "expected 'rooms' to find that $1 uses $2 but got $code:"
        echo "$output"
        failures=$((failures + 1))
      fi
    }
    # Two rooms that use each other, in the order that they may be declared in.
    rooms_of "low $2" "high $3 low"
    expect_use low 'highest, which RoomHigh.c of high defines'
    # A room that does not say what it uses; through another it does.
    rooms_of "high $3" "low $2 high"
    expect_use high 'low, which RoomLow.c of low defines'
    rooms_of "high $3" "both - high" "low $2 both"
    expect_use high 'low, which RoomLow.c of low defines'
    ;;
  *)
    echo "no planted violations for the lint '$lint'"
    exit 2
    ;;
esac

if [ $failures -gt 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo "every planted violation is found"
