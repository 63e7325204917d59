import type * as cuda from '@shoal/cuda-sys/driver'
import { expectTypeOf, test } from 'vitest'

test('a stream cannot pass for an event, a bare bigint for neither; a device address may be a bare bigint', () => {
  expectTypeOf<cuda.CUstream>().not.toExtend<cuda.CUevent>()
  expectTypeOf<bigint>().not.toExtend<cuda.CUstream>()
  expectTypeOf<cuda.CUstream>().not.toExtend<cuda.CUdeviceptr>()
  expectTypeOf<bigint>().toExtend<cuda.CUdeviceptr>()
  expectTypeOf<typeof cuda.cuStreamQuery>().parameter(0).toEqualTypeOf<cuda.CUstream | null>()
  expectTypeOf<typeof cuda.cuStreamQuery>().returns.toEqualTypeOf<cuda.CUresult>()
})
