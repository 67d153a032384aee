# What tools/package asks CPack for: a .deb for each component of
# TandemInstall.cmake. Its dependencies are those of its programs and libraries,
# as dpkg-shlibdeps finds them.

set(CPACK_PACKAGE_NAME tandem)
set(CPACK_PACKAGE_VENDOR Tandem)
set(CPACK_PACKAGE_CONTACT "The Tandem project <maintainers@tandem.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Ahead-of-time compiler for training steps")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL runtime dev nccl)
if(TANDEM_BUILD_COMPILER)
  list(APPEND CPACK_COMPONENTS_ALL compiler)
endif()
if(TARGET tandem-mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
if(TARGET tandem-images)
  list(APPEND CPACK_COMPONENTS_ALL images)
endif()
# Where Arrow is of no package, it is none that another one could depend on.
if(TARGET tandem-arrow AND NOT TANDEM_ARROW_ROOT)
  list(APPEND CPACK_COMPONENTS_ALL arrow)
endif()
if(TARGET tandem-signatures)
  list(APPEND CPACK_COMPONENTS_ALL signatures)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "runs and trains artifacts
 libtandem.so and tandem-run: no compiler, no framework.")
set(CPACK_COMPONENT_DEV_DESCRIPTION "headers of the runtime
 The C and C++ API, for CMake's find_package and pkg-config.")
set(CPACK_COMPONENT_DEV_DEPENDS runtime)
set(CPACK_COMPONENT_MPI_DESCRIPTION "runs over several processes with MPI
 The library that libtandem.so opens for workers that are MPI processes.")
set(CPACK_COMPONENT_MPI_DEPENDS runtime)
set(CPACK_COMPONENT_NCCL_DESCRIPTION "runs over several GPUs without MPI
 The library that libtandem.so opens for processes that a launcher as torchrun
 started; NCCL is opened at run time.")
set(CPACK_COMPONENT_NCCL_DEPENDS runtime)
set(CPACK_COMPONENT_IMAGES_DESCRIPTION "reads folders of PNG and JPEG
 The library that tandem-run opens to decode images.")
set(CPACK_COMPONENT_IMAGES_DEPENDS runtime)
set(CPACK_COMPONENT_ARROW_DESCRIPTION "reads Parquet and Arrow
 The library that tandem-run opens to read columns of tables.")
set(CPACK_COMPONENT_ARROW_DEPENDS runtime)
set(CPACK_COMPONENT_SIGNATURES_DESCRIPTION "signs and verifies artifacts
 The library that libtandem.so opens for Ed25519 by libcrypto.")
set(CPACK_COMPONENT_SIGNATURES_DEPENDS runtime)
set(CPACK_COMPONENT_COMPILER_DESCRIPTION "compiles models to artifacts
 The program tandem with its tools, the emulated CUDA device, and the libraries
 and headers of the tracer and the compiler.")
set(CPACK_DEBIAN_COMPILER_PACKAGE_SUGGESTS
  "tandem-dev, llvm-22-dev, libmlir-22-dev, mlir-22-tools, nlohmann-json3-dev, zlib1g-dev, libzip-dev")
# What tandem names as a shared library for others, and opens at run time.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
