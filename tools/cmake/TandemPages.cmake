# tandem_pages(TOOL COMPONENT): the manual pages and completions of a program,
# which it prints itself, are made when it is linked and installed with it. Called
# in the folder that declares the program.
include(GNUInstallDirs)
function(tandem_pages tool component)
  set(out ${PROJECT_BINARY_DIR}/install/share/${tool})
  add_custom_command(TARGET ${tool} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DTOOL=$<TARGET_FILE:${tool}>
      "-DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}" -DOUT=${out}
      -P ${PROJECT_SOURCE_DIR}/tools/cmake/ProgramPages.cmake VERBATIM)
  install(DIRECTORY ${out}/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}
    COMPONENT ${component})
endfunction()
