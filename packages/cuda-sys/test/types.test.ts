import type * as cuda from '@shoal/cuda-sys/driver'
import type * as runtime from '@shoal/cuda-sys/runtime'
import { expectTypeOf, test } from 'vitest'

test('streams and events are distinct types and never plain bigints; a device address may be a bigint (checked by tsc)', () => {
  expectTypeOf<cuda.CUstream>().not.toExtend<cuda.CUevent>()
  expectTypeOf<bigint>().not.toExtend<cuda.CUstream>()
  expectTypeOf<cuda.CUstream>().not.toExtend<cuda.CUdeviceptr>()
  expectTypeOf<bigint>().toExtend<cuda.CUdeviceptr>()
  expectTypeOf<typeof cuda.cuStreamQuery>().parameter(0).toEqualTypeOf<cuda.CUstream | null>()
  expectTypeOf<typeof cuda.cuStreamQuery>().returns.toEqualTypeOf<cuda.CUresult>()
})

test("handles of EGL, OpenGL and VDPAU are distinct from each other and from CUDA's (checked by tsc)", () => {
  expectTypeOf<cuda.EGLStreamKHR>().not.toExtend<cuda.EGLSyncKHR>()
  expectTypeOf<cuda.EGLStreamKHR>().not.toExtend<cuda.CUstream>()
  expectTypeOf<cuda.CUstream>().not.toExtend<cuda.EGLStreamKHR>()
  expectTypeOf<cuda.EGLImageKHR>().not.toExtend<cuda.CUarray>()
  expectTypeOf<cuda.CUeglStreamConnection>().not.toExtend<cuda.EGLStreamKHR>()
  expectTypeOf<bigint>().not.toExtend<cuda.EGLSyncKHR>()
  expectTypeOf<bigint>().not.toExtend<cuda.HGPUNV>()
  expectTypeOf<cuda.VdpVideoSurface>().not.toExtend<cuda.VdpOutputSurface>()
  expectTypeOf<cuda.VdpDevice>().not.toExtend<cuda.VdpVideoSurface>()
  expectTypeOf<number>().not.toExtend<cuda.VdpDevice>()
  expectTypeOf<cuda.CUstream>().not.toExtend<cuda.GLuint>()
  expectTypeOf<typeof cuda.cuEventCreateFromEGLSync>().parameter(1).toEqualTypeOf<cuda.EGLSyncKHR | null>()
  expectTypeOf<typeof cuda.cuGraphicsVDPAURegisterVideoSurface>().parameter(1).toEqualTypeOf<cuda.VdpVideoSurface>()
  expectTypeOf<typeof cuda.cuGraphicsGLRegisterBuffer>().parameter(1).toEqualTypeOf<cuda.GLuint>()
  expectTypeOf<typeof cuda.cuVDPAUGetDevice>().parameter(2).toEqualTypeOf<cuda.VdpGetProcAddress | null>()
  expectTypeOf<cuda.CUgraphicsResource>().not.toExtend<runtime.cudaStream_t>()
  expectTypeOf<runtime.cudaEglStreamConnection>().toExtend<cuda.CUeglStreamConnection>()
})

test('an earlier ABI has its original parameter types (checked by tsc)', () => {
  expectTypeOf<typeof cuda.cuMemFree_v2000>().parameter(0).toEqualTypeOf<number>()
  expectTypeOf<typeof cuda.cuMemFree>().parameter(0).toEqualTypeOf<cuda.CUdeviceptr>()
})
