/*===- dlpack.h - the DLPack structures
 *--------------------------------------===
 *
 * The part of the DLPack ABI (version 0.6, unchanged since as "legacy"
 * DLManagedTensor) that crosses Tandem's boundary, so that Tandem needs no
 * package for it. A program that has DLPack's own header includes that one
 * instead: the guard is the same.
 *
 *===----------------------------------------------------------------------===*/
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLExtDev = 12,
  kDLCUDAManaged = 13
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8E4M3FN = 10,
  kDLFloat8E5M2 = 12
} DLDataTypeCode;

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data; /* null if and only if there are no elements */
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; null: row-major */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self); /* may be null */
} DLManagedTensor;

#ifdef __cplusplus
}
#endif

#endif
