# Compiles for an older C library: headers and libraries of the sysroot that
# tools/portable-runtime fetches, with this system's libstdc++ inside.
set(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build-portable/sysroot)
execute_process(COMMAND g++ -print-libgcc-file-name
  OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE)
get_filename_component(gcc ${libgcc} DIRECTORY)
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_CXX_FLAGS_INIT --gcc-install-dir=${gcc})
set(CMAKE_C_FLAGS_INIT --gcc-install-dir=${gcc})
set(old ${CMAKE_SYSROOT}/OldLibc.o)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld -static-libstdc++ ${old}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-fuse-ld=lld -static-libstdc++ ${old}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
