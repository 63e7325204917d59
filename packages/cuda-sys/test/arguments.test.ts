import { driver, runtime } from '@shoal/cuda-sys'
import * as cuda from '@shoal/cuda-sys/driver'
import * as rt from '@shoal/cuda-sys/runtime'
import { afterAll, expect, test } from 'vitest'

// Hides a wrong type, like a caller without type checking.
const wrong = (value: unknown) => value as never

test.each([
  ['a number for a handle', () => cuda.cuStreamQuery(wrong(5)), TypeError, /^cuStreamQuery: hStream must be a bigint/],
  ['a string for a handle', () => cuda.cuEventQuery(wrong('5')), TypeError, /^cuEventQuery: hEvent /],
  ['a number for a device address', () => cuda.cuMemFree(wrong(5)), TypeError, /^cuMemFree: dptr /],
  [
    'a handle above 64 bits',
    () => cuda.cuStreamQuery(cuda.CUstream(2n ** 64n)),
    RangeError,
    /^cuStreamQuery: hStream /,
  ],
  ['a negative handle', () => cuda.cuStreamQuery(cuda.CUstream(-1n)), RangeError, /^cuStreamQuery: hStream /],
  ['undefined for a pointer', () => cuda.cuMemAlloc(wrong(undefined), 1), TypeError, /^cuMemAlloc: dptr /],
  ['an object for a pointer', () => cuda.cuMemAlloc(wrong({}), 1), TypeError, /^cuMemAlloc: dptr /],
  ['a fraction for a size', () => cuda.cuMemAlloc(null, 1.5), RangeError, /^cuMemAlloc: bytesize /],
  ['NaN for a size', () => cuda.cuMemAlloc(null, Number.NaN), RangeError, /^cuMemAlloc: bytesize /],
  ['a negative size', () => cuda.cuMemAlloc(null, -1), RangeError, /^cuMemAlloc: bytesize /],
  ['a size above 64 bits', () => cuda.cuMemAlloc(null, 2n ** 64n), RangeError, /^cuMemAlloc: bytesize /],
  ['a fraction for an int', () => cuda.cuDeviceGet(null, 0.5), RangeError, /^cuDeviceGet: ordinal /],
  ['a bigint for an int', () => cuda.cuDeviceGet(null, wrong(0n)), TypeError, /^cuDeviceGet: ordinal /],
  ['an int above 32 bits', () => cuda.cuDeviceGet(null, 2 ** 31), RangeError, /^cuDeviceGet: ordinal /],
  ['a negative unsigned', () => cuda.cuInit(-1), RangeError, /^cuInit: Flags /],
  ['a byte above 255', () => cuda.cuMemsetD8(1n, 256, 1), RangeError, /^cuMemsetD8: uc /],
  ['text with a NUL', () => cuda.cuModuleLoad(null, 'a\0b'), TypeError, /^cuModuleLoad: fname /],
  ['a struct too small', () => cuda.cuMemAdvise(1n, 1, 1, new Uint8Array(7)), RangeError, /^cuMemAdvise: location /],
  ['an object for a struct', () => cuda.cuMemAdvise(1n, 1, 1, wrong({})), TypeError, /^cuMemAdvise: location /],
  [
    'text for a float',
    () => cuda.cuTexRefSetMipmapLevelBias(cuda.CUtexref(1n), wrong('1')),
    TypeError,
    /^cuTexRefSetMipmapLevelBias: bias /,
  ],
  ['a number for an EGL stream', () => cuda.cuEGLStreamConsumerConnect(null, wrong(5)), TypeError, /Connect: stream /],
  ['a number for an EGL sync', () => cuda.cuEventCreateFromEGLSync(null, wrong(5), 0), TypeError, /Sync: eglSync /],
  ['undefined for an EGL connection', () => cuda.cuEGLStreamConsumerDisconnect(wrong(undefined)), TypeError, /: conn /],
  [
    'an EGL frame too small',
    () => cuda.cuEGLStreamProducerPresentFrame(null, new Uint8Array(63), null),
    RangeError,
    /^cuEGLStreamProducerPresentFrame: eglframe /,
  ],
  [
    'a bigint for an OpenGL buffer',
    () => cuda.cuGraphicsGLRegisterBuffer(null, wrong(5n), 0),
    TypeError,
    /^cuGraphicsGLRegisterBuffer: buffer /,
  ],
  [
    'an OpenGL target above 32 bits',
    () => cuda.cuGraphicsGLRegisterImage(null, 1, 2 ** 32, 0),
    RangeError,
    /^cuGraphicsGLRegisterImage: target /,
  ],
  [
    'a bigint for a VDPAU device',
    () => cuda.cuVDPAUGetDevice(null, wrong(1n), 2n),
    TypeError,
    /^cuVDPAUGetDevice: vdpDevice /,
  ],
  [
    'an array for the address of a C function',
    () => cuda.cuVDPAUGetDevice(null, cuda.VdpDevice(1), wrong(new BigUint64Array(1))),
    TypeError,
    /^cuVDPAUGetDevice: vdpGetProcAddress /,
  ],
  ['a number for a file name', () => cuda.cuProfilerInitialize(wrong(1), null, 0), TypeError, /: configFile /],
  [
    'a 64-bit address for an ABI of 32-bit ones',
    () => cuda.cuMemFree_v2000(2 ** 32),
    RangeError,
    /^cuMemFree_v2000: dptr /,
  ],
  ['a bigint for a 32-bit address', () => cuda.cuMemFree_v2000(wrong(1n)), TypeError, /^cuMemFree_v2000: dptr /],
  [
    'a struct too small, for an earlier ABI',
    () => cuda.cuIpcOpenMemHandle_v4010(null, new Uint8Array(63), 0),
    RangeError,
    /^cuIpcOpenMemHandle_v4010: handle /,
  ],
  [
    'a number for a graphics resource of the runtime',
    () => rt.cudaGraphicsResourceGetMappedEglFrame(null, wrong(1), 0, 0),
    TypeError,
    /^cudaGraphicsResourceGetMappedEglFrame: resource /,
  ],
  [
    'a negative OpenGL buffer in the runtime',
    () => rt.cudaGraphicsGLRegisterBuffer(null, -1, 0),
    RangeError,
    /^cudaGraphicsGLRegisterBuffer: buffer /,
  ],
])('%s is refused by function and parameter, before the library is searched', (_what, call, kind, message) => {
  expect(call).toThrow(kind)
  expect(call).toThrow(message)
})

afterAll(() => {
  expect(driver.isLoaded).toBe(false)
  expect(driver.trace).toEqual([])
  expect(runtime.isLoaded).toBe(false)
})
