# MLIR 22 for the compiler side: one interface target (tandem-mlir) that carries
# include paths, flags and libMLIR/libLLVM; one precompiled header; and
# tandem_tablegen().
#
# `find_package(MLIR 22)` fails (its version file wants major.minor), so the
# version is checked here.

find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "Tandem needs LLVM/MLIR 22 but found ${LLVM_VERSION}; "
    "install libmlir-22-dev, mlir-22-tools and liblld-22-dev (tools/install "
    "does), or configure with -DTANDEM_BUILD_COMPILER=OFF")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
include(TableGen)
include(AddMLIR)

add_library(tandem-mlir INTERFACE)
target_include_directories(tandem-mlir SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(llvmDefinitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(tandem-mlir INTERFACE ${llvmDefinitions}
  $<BUILD_INTERFACE:-Wno-unused-parameter>)
target_link_libraries(tandem-mlir INTERFACE tandem-flags MLIR LLVM)
set_target_properties(tandem-mlir PROPERTIES TANDEM_SEES_MLIR ON)

foreach(level "" -unoptimized)
  tandem_pch(tandem-pch${level} ${PROJECT_SOURCE_DIR}/ir/Pch.cpp
    ir/Pch.h)
  target_link_libraries(tandem-pch${level} PUBLIC tandem-mlir)
endforeach()
target_compile_options(tandem-pch-unoptimized PRIVATE $<$<CONFIG:Release>:-O0>)
set_target_properties(tandem-pch-unoptimized PROPERTIES EXCLUDE_FROM_ALL ON)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # The headers are so large that g++ gives this warning up, with a note in
  # every file.
  target_compile_options(tandem-mlir INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-misleading-indentation>)
endif()

# tandem_tablegen(FILE.td OUT MODE...): generates OUT next to the binary tree's
# copy of the current folder and adds it to `tandem-tablegen`.
function(tandem_tablegen td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(MLIR_TABLEGEN_FLAGS)
  list(SUBLIST ARGN 0 1 out)
  list(SUBLIST ARGN 1 -1 modes)
  mlir_tablegen(${out} ${modes}
    EXTRA_INCLUDES ${PROJECT_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
  set_property(GLOBAL APPEND PROPERTY TANDEM_TABLEGEN
    ${CMAKE_CURRENT_BINARY_DIR}/${out})
endfunction()
