# cmake -DTOOL=PROGRAM [-DEMULATOR=PROGRAM] -DOUT=FOLDER -P ProgramPages.cmake:
# writes the manual pages and the completions of a program to FOLDER, as it prints
# them from its tables of options, at their places under share/.

# print(FILE WORDS...): what the program prints.
function(print file)
  execute_process(COMMAND ${EMULATOR} ${TOOL} ${ARGN} OUTPUT_VARIABLE text
    COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${OUT}/${file} "${text}")
  set(text "${text}" PARENT_SCOPE)
endfunction()

get_filename_component(name ${TOOL} NAME)
file(REMOVE_RECURSE ${OUT})
print(bash-completion/completions/${name} completion bash)
print(zsh/site-functions/_${name} completion zsh)
print(fish/vendor_completions.d/${name}.fish completion fish)
print(man/man1/${name}.1 help --man)
# The program's page names those of its commands.
string(REPLACE "\\-" "-" plain "${text}")
string(REGEX MATCHALL "BR ${name}-[a-z]+" pages "${plain}")
foreach(page IN LISTS pages)
  string(REPLACE "BR ${name}-" "" command "${page}")
  # tandem-run is a program, whose page has the command 'run' too.
  if(NOT "${name}-${command}" STREQUAL "tandem-run")
    print(man/man1/${name}-${command}.1 help ${command} --man)
  endif()
endforeach()
