# How tests are registered, beside add_test(): GoogleTest programs, folders of
# lit tests, and generated pages that must be fresh.

find_package(GTest REQUIRED)
include(GoogleTest)

# tandem_test(NAME [SUITES] SOURCES ... LINK ...): a GoogleTest program in
# build/tests; each of its cases is a test `NAME.SUITE.CASE`. With SUITES each suite
# is one, `NAME.SUITE`: for programs of many cases that take less time than a
# process with MLIR takes to begin (0.06 s), and skip nothing, which ctest would
# not see.
function(tandem_test name)
  cmake_parse_arguments(arg "SUITES" "" "SOURCES;LINK" ${ARGN})
  tandem_tool(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} GTest::gtest_main)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(NOT arg_SUITES)
    gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST
      DISCOVERY_TIMEOUT 60)
    return()
  endif()
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(WRITE ${file}-suites.cmake
    "set(TANDEM_PROGRAM [==[${PROJECT_BINARY_DIR}/tests/${name}]==])\n"
    "set(TANDEM_FOLDER [==[${CMAKE_CURRENT_BINARY_DIR}]==])\n"
    "set(TANDEM_NAME [==[${name}]==])\n"
    "set(TANDEM_SUITES [==[${file}-suites-list.cmake]==])\n"
    "include([==[${PROJECT_SOURCE_DIR}/tools/cmake/ListSuites.cmake]==])\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file}-suites.cmake)
endfunction()

# tandem_lit(FOLDER): the .mlir and .test files under tests/FOLDER, as one test
# `lit.FOLDER`; needs LLVM's tools, so only for builds with the compiler.
function(tandem_lit folder)
  find_program(TANDEM_LIT lit REQUIRED
    HINTS ${LLVM_TOOLS_BINARY_DIR} NO_DEFAULT_PATH)
  # lit takes its configuration from the folder of the tests it is given, so the
  # build has a folder with a configuration that stands for FOLDER.
  set(LIT_FOLDER ${folder})
  set(site ${PROJECT_BINARY_DIR}/tests/lit/${folder})
  configure_file(${PROJECT_SOURCE_DIR}/tests/lit.site.cfg.py.in
    ${site}/lit.site.cfg.py @ONLY)
  add_test(NAME lit.${folder} COMMAND ${TANDEM_LIT} -v ${site})
  set_tests_properties(lit.${folder} PROPERTIES LABELS lit PROCESSORS 2
    COST 20) # some are the last that are declared
endfunction()

# tandem_generated_page(PAGE COMMAND...): docs/PAGE is what COMMAND prints. The
# target `docs` writes it, and the test `docs.PAGE` fails, with the difference,
# when the page in the repository is another.
function(tandem_generated_page page)
  set(generate ${PROJECT_SOURCE_DIR}/tests/docs/generated-page.sh)
  set(file ${PROJECT_SOURCE_DIR}/docs/${page})
  if(NOT TARGET docs)
    add_custom_target(docs)
  endif()
  string(MAKE_C_IDENTIFIER "docs-${page}" target)
  add_custom_target(${target}
    COMMAND ${generate} write ${file} ${ARGN} VERBATIM)
  add_dependencies(docs ${target})
  add_test(NAME docs.${page} COMMAND ${generate} check ${file} ${ARGN})
  set_tests_properties(docs.${page} PROPERTIES LABELS docs)
endfunction()
