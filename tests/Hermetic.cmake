# Read by ctest before it runs the tests of this folder: what they compile is not
# taken from the user's cache of kernels, and does not go there. Tests of the
# cache name one.
set(ENV{TANDEM_KERNEL_CACHE} off)
