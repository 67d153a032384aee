# Read by ctest, after a file of a program of tests has set
#   TANDEM_PROGRAM    the program
#   TANDEM_FOLDER     where it runs
#   TANDEM_NAME       the beginning of its tests' names
#   TANDEM_SUITES     the file that names the tests, which is written anew where
#                     the program is newer
# (tandem_test() with SUITES, TandemTests.cmake): each suite of the program is a test.

if(NOT EXISTS ${TANDEM_PROGRAM})
  add_test(${TANDEM_NAME}_NOT_BUILT ${TANDEM_NAME}_NOT_BUILT)
  return()
endif()
if(NOT EXISTS ${TANDEM_SUITES} OR
   NOT ${TANDEM_SUITES} IS_NEWER_THAN ${TANDEM_PROGRAM} OR
   NOT ${TANDEM_SUITES} IS_NEWER_THAN ${CMAKE_CURRENT_LIST_FILE})
  execute_process(COMMAND ${TANDEM_PROGRAM} --gtest_list_tests
    WORKING_DIRECTORY ${TANDEM_FOLDER} TIMEOUT 60
    OUTPUT_VARIABLE output RESULT_VARIABLE result)
  # A suite is a line that ends with a dot, or has a comment behind it; cases are
  # indented.
  string(REGEX MATCHALL "\n[A-Za-z0-9_/]+[.]" suites "\n${output}")
  if(NOT result EQUAL 0 OR NOT suites)
    message(FATAL_ERROR "${TANDEM_PROGRAM} lists no tests: ${result}")
  endif()
  set(text)
  foreach(suite ${suites})
    string(REGEX REPLACE "[\n.]" "" suite ${suite})
    string(APPEND text
      "add_test([==[${TANDEM_NAME}.${suite}]==] [==[${TANDEM_PROGRAM}]==] [==[--gtest_filter=${suite}.*]==])\n"
      "set_tests_properties([==[${TANDEM_NAME}.${suite}]==] PROPERTIES WORKING_DIRECTORY [==[${TANDEM_FOLDER}]==])\n")
  endforeach()
  file(WRITE ${TANDEM_SUITES} "${text}")
endif()
include(${TANDEM_SUITES})
