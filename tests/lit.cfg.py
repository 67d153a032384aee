# How lit runs the tests of the IR: `// RUN:` lines of .mlir files with the
# project's programs and LLVM's FileCheck, not and split-file on the path.
#
# Started by CTest through the lit.site.cfg.py of the build folder, which sets
# the folders and then loads this file.
import os
import platform
import sys

import lit.formats

config.name = "tandem-" + config.tandem_folder
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ll", ".mlir", ".test"]
config.excludes = ["Inputs", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.join(
    config.tandem_source_dir, "tests", config.tandem_folder
)
config.test_exec_root = os.path.join(
    config.tandem_binary_dir, "tests", "lit", config.tandem_folder
)

config.environment["PATH"] = os.pathsep.join(
    [
        config.tandem_binary_dir + "/bin",
        config.llvm_tools_dir,
        config.environment["PATH"],
    ]
)
config.environment["LC_ALL"] = "C.UTF-8"
# The sanitizers' settings reach the programs under test.
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

if platform.machine() == "x86_64":
    config.available_features.add("x86")
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%tandem_source", config.tandem_source_dir))
config.substitutions.append(("%tandem_binary", config.tandem_binary_dir))
