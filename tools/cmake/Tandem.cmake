# What every target of the project shares: language, warnings, places of the
# outputs, sanitizers; and the two functions that declare libraries and tools.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
# One mode for libraries and programs, so that they can share the precompiled
# header.
add_compile_options(-fPIC)
# A product and a sum are rounded one after the other on every machine, also where
# the least processor has an instruction for both.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  add_compile_options(-ffp-contract=off)
endif()
set(CMAKE_CXX_VISIBILITY_PRESET default)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_package(Threads REQUIRED)

if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # ccache can only keep objects whose precompiled header carries no time.
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
  # CMake's own names the header, too, by an absolute path, which ccache takes for
  # another in another folder.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
endif()

# The installed headers keep the folders that includes name (TandemInstall).
add_library(tandem-flags INTERFACE)
target_include_directories(tandem-flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
  $<INSTALL_INTERFACE:include> $<INSTALL_INTERFACE:include/tandem>)
target_compile_features(tandem-flags INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)
target_compile_options(tandem-flags INTERFACE
  $<BUILD_INTERFACE:-Wall> $<BUILD_INTERFACE:-Wextra>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND
    CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlaps and overflows in `"x" + std::string` (GCC bug 105651).
  target_compile_options(tandem-flags INTERFACE
    $<BUILD_INTERFACE:-Wno-restrict> $<BUILD_INTERFACE:-Wno-stringop-overflow>
    $<BUILD_INTERFACE:-Wno-array-bounds>)
endif()

# g++ takes a source that another includes for a header, whose anonymous namespace
# would be another type in each source.
if(TANDEM_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(tandem-flags INTERFACE
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>>)
endif()

# g++ takes an assertion of GoogleTest behind an `if` for a dangling else; clang,
# which builds the same files, warns of true ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(tandem-flags INTERFACE
    $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-else>>)
endif()

if(TANDEM_SANITIZE)
  string(REPLACE ";" "," sanitizers "${TANDEM_SANITIZE}")
  add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer
    -gline-tables-only
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${sanitizers})
endif()
if(TANDEM_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# No stack is run.
add_link_options(LINKER:-z,relro,-z,noexecstack)

# What of the flags below this compiler and linker have. Variables begin as zero, by
# which a length is none and a pointer is followed to no place; a pattern would be
# a large length. The mark of a shadow stack is asked of the linker, since the C
# library's start has none here. That of indirect branches is not: our functions begin
# with what it wants, kernels of artifacts do not.
include(CheckCXXCompilerFlag)
include(CheckLinkerFlag)
set(tandemHardening -fstack-protector-strong)
foreach(flag -fstack-clash-protection -fcf-protection=full
    -mbranch-protection=standard -ftrivial-auto-var-init=zero)
  string(MAKE_C_IDENTIFIER "TANDEM_HAS${flag}" known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    list(APPEND tandemHardening ${flag})
  endif()
endforeach()
set(tandemHardenedLinks LINKER:-z,now)
check_linker_flag(CXX LINKER:--fatal-warnings,-z,shstk TANDEM_LINKER_SHADOW_STACK)
if(TANDEM_LINKER_SHADOW_STACK AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND tandemHardenedLinks LINKER:-z,shstk)
endif()

# tandem_harden(TARGET): guards of the stack, checked copies, variables that begin as
# zero, and tables of the dynamic linker that are only read once a program has begun,
# for the side that reads files of others where it runs. (Of a program of the other
# side they are tables of MLIR's many functions: each start would take as long as all
# calls.) Kernels are no targets, and have none. Sanitizers bring checks of their own.
# Each function has a section, so that tandem-run has none that it does not call.
option(TANDEM_HARDEN "Guard stacks and copies of the runtime's side" ON)
function(tandem_harden name)
  if(TANDEM_SANITIZE OR NOT TANDEM_HARDEN)
    return()
  endif()
  target_compile_options(${name} PRIVATE ${tandemHardening}
    -ffunction-sections -fdata-sections
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
    $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
  target_link_options(${name} PRIVATE ${tandemHardenedLinks})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # It warns of results that were cast to void, too.
    target_compile_options(${name} PRIVATE -Wno-unused-result)
  endif()
endfunction()

# tandem_unite(RESULT NAME SOURCE...): what the target NAME compiles of these sources.
# With TANDEM_UNITY some eight of them are one file that includes them, which takes
# half of the compiler's time: what they share of headers' templates is read and
# optimized once. CMake's own would name absolute paths, by which ccache finds nothing
# of another folder.
#
# tandem_apart(SOURCE...), called before: these are compiled alone, since a name of
# theirs is another's too, as where `using namespace llvm` is beside MLIR's, or since
# tests/additions puts another in their place.
set(tandemUnitySize 8 CACHE STRING "Sources that are compiled as one")
mark_as_advanced(tandemUnitySize)
function(tandem_unite result name)
  set(alone)
  set(together)
  foreach(source ${ARGN})
    get_source_file_property(isApart ${source} TANDEM_APART)
    if(TANDEM_UNITY AND source MATCHES "^[^/$].*[.]cpp$" AND NOT isApart)
      list(APPEND together ${source})
    else()
      list(APPEND alone ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  if(count LESS 2)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  # Batches that differ by one source at most.
  math(EXPR batches "(${count} + ${tandemUnitySize} - 1) / ${tandemUnitySize}")
  set(begin 0)
  foreach(batch RANGE 1 ${batches})
    math(EXPR end "${count} * ${batch} / ${batches}")
    math(EXPR length "${end} - ${begin}")
    list(SUBLIST together ${begin} ${length} sources)
    set(begin ${end})
    set(text)
    foreach(source ${sources})
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${name}.${batch}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}")
    list(APPEND alone ${file})
    cmake_language(EVAL CODE "cmake_language(DEFER CALL tandem_check_united ${sources})")
  endforeach()
  set(${result} ${alone} PARENT_SCOPE)
endfunction()
function(tandem_apart)
  foreach(source ${ARGN})
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      message(FATAL_ERROR "tandem_apart: there is no ${source}")
    endif()
  endforeach()
  set_source_files_properties(${ARGN} PROPERTIES TANDEM_APART ON)
endfunction()

# At the folder's end: what is said of one source would not be said of its batch.
function(tandem_check_united)
  foreach(source ${ARGN})
    foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS COMPILE_FLAGS INCLUDE_DIRECTORIES)
      get_source_file_property(value ${source} ${property})
      if(value)
        message(FATAL_ERROR "${source} has ${property}, but is compiled with others: "
          "expected tandem_apart(${source}) before its target")
      endif()
    endforeach()
  endforeach()
endfunction()

# tandem_library(NAME SOURCES ... LINK ... [SMALL] [SELDOM ...]): a static library
# `NAME` with the alias `tandem::X` for `tandem-X`. SMALL: nothing in it is on the
# path of a step, so that its code is compiled for size, which tandem-run has a limit
# of. SELDOM: sources that are not on that path either, though others of the library
# are.
#
# What it links of the project is declared before it, so that no two libraries
# need each other. Static libraries would link all the same, so the test
# lint.rooms compares the symbols that they use with what they link, which
# build/libraries.txt lists.
function(tandem_library name)
  cmake_parse_arguments(arg "SMALL" "" "SOURCES;SELDOM;LINK;DEPENDS" ${ARGN})
  set(linked)
  foreach(link ${arg_LINK})
    if(link MATCHES "^tandem::")
      if(NOT TARGET ${link})
        message(FATAL_ERROR "${name} links ${link}, which is not declared "
          "before it: libraries may not need each other")
      endif()
      string(REPLACE "tandem::" " tandem-" link ${link})
      string(APPEND linked ${link})
    endif()
  endforeach()
  if(NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests")
    set_property(GLOBAL APPEND_STRING PROPERTY TANDEM_LIBRARIES
      "${name} $<TARGET_FILE:${name}>${linked}\n")
  endif()
  tandem_unite(sources ${name} ${arg_SOURCES})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC tandem-flags ${arg_LINK})
  string(REGEX REPLACE "^tandem-" "tandem::" alias ${name})
  add_library(${alias} ALIAS ${name})
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
  if(arg_SELDOM)
    # A precompiled header is for one level of optimization, and a target has one.
    tandem_unite(sources ${name}-seldom ${arg_SELDOM})
    add_library(${name}-seldom OBJECT ${sources})
    target_link_libraries(${name}-seldom PRIVATE tandem-flags ${arg_LINK})
    tandem_for_size(${name}-seldom -Os seldom)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}-seldom>)
  endif()
  if(arg_SMALL)
    tandem_for_size(${name} -Oz small)
    return()
  endif()
  tandem_reuse_pch(${name} ${arg_LINK})
endfunction()

# tandem_for_size(TARGET LEVEL HEADER): the level -Os or -Oz, which has a precompiled
# header of its own.
function(tandem_for_size name level header)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:${level}>)
  tandem_harden(${name})
  if(TANDEM_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM tandem-runtime-pch-${header})
  endif()
endfunction()

# tandem_opened_library(NAME OBJECTS SOURCES ... LINK ...): a library that the
# runtime opens where it is there. Its objects are the target OBJECTS, for the
# test that gives them any bytes.
function(tandem_opened_library name objects)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${objects} OBJECT ${arg_SOURCES})
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${objects} PUBLIC tandem-flags ${arg_LINK})
  tandem_harden(${objects})
  add_library(${name} MODULE $<TARGET_OBJECTS:${objects}>)
  target_link_libraries(${name} PRIVATE ${objects})
  set_target_properties(${name} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LINKER_LANGUAGE CXX)
  tandem_harden(${name})
endfunction()

# tandem_objects(NAME SOURCES ... LINK ...): objects that several programs link.
function(tandem_objects name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  tandem_unite(sources ${name} ${arg_SOURCES})
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PUBLIC tandem-flags ${arg_LINK})
  tandem_reuse_pch(${name} ${arg_LINK})
endfunction()

# tandem_tool(NAME SOURCES ... LINK ...): a program in build/bin.
function(tandem_tool name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  tandem_unite(sources ${name} ${arg_SOURCES})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE tandem-flags ${arg_LINK})
  tandem_reuse_pch(${name} ${arg_LINK})
endfunction()

# tandem_standalone(NAME): the program has libstdc++ inside, and asks for nothing that
# glibc 2.34 lacks: it is copied to machines that nobody knows before.
add_library(old-libc OBJECT EXCLUDE_FROM_ALL
  ${PROJECT_SOURCE_DIR}/tools/portable/OldLibc.c)
target_compile_options(old-libc PRIVATE -fno-builtin)
function(tandem_standalone name)
  if(CMAKE_SYSROOT) # tools/portable/toolchain.cmake does it for all
    return()
  endif()
  target_link_libraries(${name} PRIVATE old-libc)
  target_link_options(${name} PRIVATE -static-libstdc++)
endfunction()

# Each side of the project has one precompiled header: compiler-side targets
# (those that link tandem-mlir, or a library that does) share ir/Pch.h, the others
# runtime/Pch.h. Without TANDEM_PRECOMPILE the runtime's side has none, so that a
# source that misses an include is found, if it is compiled alone (preset gcc).
#
# Where `tandemUnoptimized` is set (tests/CMakeLists.txt), code of a release build
# is not optimized: it runs once, and optimizing it took more than half of the
# compiler's time for most of its files. A precompiled header is for one level, so
# these targets have their own.
function(tandem_reuse_pch name)
  set(level)
  if(tandemUnoptimized AND CMAKE_BUILD_TYPE STREQUAL Release)
    target_compile_options(${name} PRIVATE -O0)
    set(level -unoptimized)
  endif()
  tandem_sees_mlir(isCompilerSide ${ARGN})
  if(isCompilerSide)
    set_target_properties(${name} PROPERTIES TANDEM_SEES_MLIR ON)
    target_precompile_headers(${name} REUSE_FROM tandem-pch${level})
    return()
  endif()
  if(NOT level) # checked copies need an optimizer
    tandem_harden(${name})
  endif()
  if(TANDEM_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM tandem-runtime-pch${level})
  endif()
endfunction()

# tandem_sees_mlir(RESULT LINK...): whether one of what is linked brings MLIR's headers.
function(tandem_sees_mlir result)
  set(${result} OFF PARENT_SCOPE)
  foreach(link ${ARGN})
    if(TARGET ${link})
      get_target_property(seesMlir ${link} TANDEM_SEES_MLIR)
      if(seesMlir)
        set(${result} ON PARENT_SCOPE)
      endif()
    endif()
  endforeach()
endfunction()

# tandem_pch(NAME SOURCE HEADER): a target whose precompiled header others reuse.
# It does not go through ccache, which takes a header with another comment for the
# same one; the compiler, which compares sizes, does not. ccache knows it by its sum.
function(tandem_pch name source header)
  add_library(${name} STATIC ${source})
  target_precompile_headers(${name} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>") # no absolute path in what CMake writes
  set(launcher)
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES ccache)
    set(launcher ${PROJECT_SOURCE_DIR}/tools/lib/precompile)
  endif()
  set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER "${launcher}")
endfunction()

if(TANDEM_PRECOMPILE)
  foreach(level "" -small -seldom -unoptimized)
    tandem_pch(tandem-runtime-pch${level} ${PROJECT_SOURCE_DIR}/runtime/Pch.cpp
      runtime/Pch.h)
    target_link_libraries(tandem-runtime-pch${level} PUBLIC tandem-flags)
  endforeach()
  tandem_harden(tandem-runtime-pch)
  tandem_harden(tandem-runtime-pch-small)
  tandem_harden(tandem-runtime-pch-seldom)
  target_compile_options(tandem-runtime-pch-small PRIVATE
    $<$<CONFIG:Release>:-Oz>)
  target_compile_options(tandem-runtime-pch-seldom PRIVATE
    $<$<CONFIG:Release>:-Os>)
  target_compile_options(tandem-runtime-pch-unoptimized PRIVATE
    $<$<CONFIG:Release>:-O0>)
  set_target_properties(tandem-runtime-pch-unoptimized PROPERTIES
    EXCLUDE_FROM_ALL ON)
endif()
