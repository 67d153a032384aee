# What `cmake --install` writes, in these components (docs/INSTALL.md):
#
#   runtime    libtandem.so.N and tandem-run: what trains
#   mpi        libtandem-mpi.so, where MPI was found: opened by the runtime
#   nccl       libtandem-nccl.so: opened by the runtime
#   images     libtandem-images.so, where libpng or libjpeg was found: opened by
#              tandem-run
#   arrow      libtandem-arrow.so, where Apache Arrow was found: opened by
#              tandem-run
#   signatures libtandem-signatures.so, where libcrypto was found: opened by the
#              runtime
#   dev        headers of the C and C++ API, what find_package and pkg-config read
#   compiler   tandem and its tools, the CUDA emulator, and the libraries and
#              headers of the tracer and the compiler
#
# Headers keep the folders that includes name, under include/tandem; those of the
# C API stand at its top, as <tandem/tandem.h>.

# Tests and benchmarks need not be built to install.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(configFolder ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
set(headers ${CMAKE_INSTALL_INCLUDEDIR}/tandem)
set(generated ${PROJECT_BINARY_DIR}/install)

# --- runtime -----------------------------------------------------------------
install(TARGETS tandem-run RUNTIME COMPONENT runtime)
install(TARGETS tandem-shared EXPORT tandemRuntime
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev)
set_target_properties(tandem-shared PROPERTIES EXPORT_NAME tandem)

# --- mpi ---------------------------------------------------------------------
# A package of its own, so that the runtime needs no MPI.
if(TARGET tandem-mpi)
  install(TARGETS tandem-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT mpi)
endif()

# --- nccl --------------------------------------------------------------------
# It opens NCCL and the driver at run time, and needs neither to be installed.
install(TARGETS tandem-nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT nccl)

# --- images ------------------------------------------------------------------
# A package of its own, so that the runtime needs neither libpng nor libjpeg.
if(TARGET tandem-images)
  install(TARGETS tandem-images LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT images)
endif()

# --- arrow -------------------------------------------------------------------
# A package of its own, so that the runtime needs no Arrow.
if(TARGET tandem-arrow)
  install(TARGETS tandem-arrow LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT arrow)
endif()

# --- signatures --------------------------------------------------------------
# A package of its own, so that the runtime needs no libcrypto.
if(TARGET tandem-signatures)
  install(TARGETS tandem-signatures LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT signatures)
endif()

# --- dev ---------------------------------------------------------------------
set(publicHeaders tandem.h tandem.hpp graph.h graph.hpp dist.h dist.hpp
  comm.h comm.hpp dlpack.h)
list(TRANSFORM publicHeaders PREPEND ${PROJECT_SOURCE_DIR}/runtime/
  OUTPUT_VARIABLE publicFiles)
install(FILES ${publicFiles} DESTINATION ${headers} COMPONENT dev)
# Sources of this repository say "runtime/tandem.h", and compile outside of it.
foreach(header IN LISTS publicHeaders)
  file(CONFIGURE OUTPUT ${generated}/runtime/${header}
    CONTENT "#include \"../@header@\"\n" @ONLY)
  install(FILES ${generated}/runtime/${header} DESTINATION ${headers}/runtime
    COMPONENT dev)
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tandemConfig.cmake.in
  ${generated}/tandemConfig.cmake INSTALL_DESTINATION ${configFolder})
write_basic_package_version_file(${generated}/tandemConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/tandemConfig.cmake
  ${generated}/tandemConfigVersion.cmake
  DESTINATION ${configFolder} COMPONENT dev)
install(EXPORT tandemRuntime NAMESPACE tandem:: FILE tandemRuntime.cmake
  DESTINATION ${configFolder} COMPONENT dev)
# Paths in tandem.pc follow from its own place, so that a prefix can be moved.
file(RELATIVE_PATH prefixFromPkgConfig
  /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tandem.pc.in ${generated}/tandem.pc
  @ONLY)
install(FILES ${generated}/tandem.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# --- compiler ----------------------------------------------------------------
if(TANDEM_BUILD_COMPILER)
  # libLLVM and libMLIR are found where they were linked from.
  set_target_properties(tandem tandem-opt tandem-lsp-server PROPERTIES
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS tandem tandem-opt tandem-lsp-server
    RUNTIME COMPONENT compiler)
  install(TARGETS tandem-cuda-emulator LIBRARY COMPONENT compiler)
  get_property(rooms GLOBAL PROPERTY TANDEM_PASSES_ROOMS)
  set(libraries tandem-artifact tandem-ir tandem-functions tandem-capture
    tandem-onnx tandem-torch tandem-stablehlo ${rooms} tandem-passes
    tandem-phases
    tandem-llvm-passes tandem-import tandem-importing tandem-link
    tandem-emit tandem-tune tandem-compiler tandem-trace)
  install(TARGETS tandem-flags tandem-mlir ${libraries}
    EXPORT tandemCompiler ARCHIVE COMPONENT compiler)
  foreach(library ${libraries})
    string(REGEX REPLACE "^tandem-" "" name ${library})
    set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  install(EXPORT tandemCompiler NAMESPACE tandem:: FILE tandemCompiler.cmake
    DESTINATION ${configFolder} COMPONENT compiler)
  foreach(folder ir passes compiler runtime/artifact)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder}
      DESTINATION ${headers}/${folder}/.. COMPONENT compiler
      FILES_MATCHING PATTERN "*.h" PATTERN "*.h.inc" PATTERN "Manifest.def" PATTERN CMakeFiles EXCLUDE)
  endforeach()
endif()

# --- what is said in every package -------------------------------------------
foreach(component runtime dev compiler mpi nccl images arrow signatures)
  if(component STREQUAL mpi AND NOT TARGET tandem-mpi)
    continue()
  endif()
  if(component STREQUAL images AND NOT TARGET tandem-images)
    continue()
  endif()
  if(component STREQUAL arrow AND NOT TARGET tandem-arrow)
    continue()
  endif()
  if(component STREQUAL signatures AND NOT TARGET tandem-signatures)
    continue()
  endif()
  if(component STREQUAL compiler AND NOT TANDEM_BUILD_COMPILER)
    continue()
  endif()
  set(package tandem-${component})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}
    RENAME copyright COMPONENT ${component})
  # What may be trusted is asked where it is installed.
  install(FILES ${PROJECT_SOURCE_DIR}/SECURITY.md
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}
    COMPONENT ${component})
endforeach()
