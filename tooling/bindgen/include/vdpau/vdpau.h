#ifndef SHOAL_VDPAU_H
#define SHOAL_VDPAU_H

#include <stdint.h>

typedef uint32_t VdpDevice;
typedef uint32_t VdpVideoSurface;
typedef uint32_t VdpOutputSurface;
typedef uint32_t VdpFuncId;

typedef enum { VDP_STATUS_OK = 0 } VdpStatus;

typedef VdpStatus VdpGetProcAddress(VdpDevice device, VdpFuncId function_id, void **function_pointer);

#endif
