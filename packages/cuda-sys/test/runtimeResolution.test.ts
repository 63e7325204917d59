import { VersionTooNewError, VersionTooOldError } from '@shoal/types'
import { expect, test } from 'vitest'
import { compileStub, moduleRunner } from '../../ffi/test/support/stub.js'
import { otherMajors } from '../src/runtime/generated/lookup.gen.js'
import { signatureError } from '../src/runtime/signature.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

const source = `
typedef unsigned long long word;
struct Location { int type; int id; };
struct Pitched { void* ptr; size_t pitch, xsize, ysize; };
struct Extent { size_t width, height, depth; };
struct Dim3 { unsigned x, y, z; };
struct Handle { unsigned char bytes[64]; };

int cudaRuntimeGetVersion(int* version) { *version = VERSION; return 0; }
int cudaMalloc(void** pointer, size_t bytes) { dprintf(1, "malloc %zu\\n", bytes); return 0; }
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind) { dprintf(1, "legacy copy %zu %d\\n", bytes, kind); return 0; }
int cudaMemcpy_ptds(void* to, const void* from, size_t bytes, int kind) { dprintf(1, "per-thread copy %zu %d\\n", bytes, kind); return 0; }
int cudaMemPrefetchAsync(void* p, size_t n, struct Location at, unsigned flags, void* stream) {
  dprintf(1, "prefetch %llx %zu %d %d %u %llx\\n", (word)p, n, at.type, at.id, flags, (word)stream); return 0; }
int cudaMemset3D(struct Pitched p, int value, struct Extent e) {
  dprintf(1, "set %llx %zu %zu %zu %d %zu %zu %zu\\n", (word)p.ptr, p.pitch, p.xsize, p.ysize, value, e.width, e.height, e.depth); return 0; }
int cudaLaunchKernel(const void* f, struct Dim3 g, struct Dim3 b, void** args, size_t shared, void* stream) {
  dprintf(1, "launch %llx %u %u %u %u %u %u %llx %zu %llx\\n", (word)f, g.x, g.y, g.z, b.x, b.y, b.z, (word)args, shared, (word)stream); return 0; }
int cudaIpcOpenMemHandle(void** pointer, struct Handle handle, unsigned flags) {
  dprintf(1, "open %d %d %u\\n", handle.bytes[0], handle.bytes[63], flags); return 0; }
struct Format { int x, y, z, w, f; };
struct Format cudaCreateChannelDesc(int x, int y, int z, int w, int f) { struct Format d = { x, y, z, w, f }; return d; }
const char* cudaGetErrorName(int error) { return error == -3 ? "minus three" : "other"; }
`

const differingIn12 = Object.keys(otherMajors).filter((symbol) => otherMajors[symbol]?.includes(12))

function run(version: number, module: string, environment: Record<string, string> = {}): string[] {
  const library = compileStub(`runtime-${version}`, source, { VERSION: version })
  return runModule(module, { SHOAL_CUDART_LIBRARY: library, ...environment })
}

test('functions with another signature in another major version refuse with both versions, and others work', () => {
  const lines = run(
    12080,
    `import { cudaMalloc, cudaMemPrefetchAsync } from '@shoal/cuda-sys/runtime'
     cudaMalloc(new BigUint64Array(1), 99)
     const errors = []
     for (let i = 0; i < 2; i++) try { cudaMemPrefetchAsync(null, 1, new Uint8Array(8), 0, null) } catch (error) { errors.push(error) }
     console.log(errors[0].name, errors[0].api, errors[0].since, errors[0].installed, errors[0] === errors[1])`,
  )
  expect(lines).toEqual(['malloc 99', 'VersionTooOldError cudaMemPrefetchAsync 13.0 12.8 true'])
})

const question = { library: 'NVIDIA CUDA runtime', symbol: 'cudaMemAdvise', since: 13000, generated: 13000 }

test('the error for another signature names both versions in either direction', () => {
  const older = signatureError({ ...question, installed: 12080, otherMajors: [11, 12] })
  expect(older).toBeInstanceOf(VersionTooOldError)
  expect(older?.message).toMatch(/^cudaMemAdvise needs NVIDIA CUDA runtime 13\.0 or newer; 12\.8 is installed\./)
  const newer = signatureError({ ...question, installed: 14010, otherMajors: [14] })
  expect(newer).toBeInstanceOf(VersionTooNewError)
  expect(newer?.message).toMatch(
    /^cudaMemAdvise is bound with the signature of NVIDIA CUDA runtime 13\.0; 14\.1 is installed/,
  )
  expect(signatureError({ ...question, installed: 13020, otherMajors: [11, 12] })).toBeUndefined()
  // This version is older than every compared major.
  expect(signatureError({ ...question, installed: 10020, otherMajors: [11, 12] })).toBeInstanceOf(VersionTooOldError)
  expect(signatureError({ ...question, since: 12000, installed: 12080, otherMajors: [11] })).toBeUndefined()
  expect(signatureError({ ...question, installed: 13000, otherMajors: [14] })).toBeUndefined()
})

test('every function of the table refuses in libcudart 12, and none in libcudart 13', () => {
  const module = `import * as runtime from '@shoal/cuda-sys/runtime'
     for (const symbol of ${JSON.stringify(differingIn12)}) {
       try { console.log(symbol, runtime.runtime.address(symbol, 13000) !== 0n) }
       catch (error) { console.log(symbol, error.name, error.since, error.installed) }
     }`
  expect(differingIn12.length).toBeGreaterThan(10)
  expect(run(12080, module)).toEqual(differingIn12.map((symbol) => `${symbol} VersionTooOldError 13.0 12.8`))
  const names = run(13000, module).map((line) => line.split(' ')[1])
  expect(names.filter((name) => name !== 'true' && name !== 'SymbolNotFoundError')).toEqual([])
})

test('a function newer than libcudart is refused by its version, not reported as missing', () => {
  const lines = run(
    12080,
    `import { cudaLogsRegisterCallback } from '@shoal/cuda-sys/runtime'
     try { cudaLogsRegisterCallback(null, null, null) } catch (error) { console.log(error.name, error.api, error.since) }`,
  )
  expect(lines).toEqual(['VersionTooOldError cudaLogsRegisterCallback 13.0'])
})

test.each([
  [11080, 'cudaGetKernel', 'null, null', 'VersionTooOldError 12.1 11.8'],
  [11080, 'cudaGraphInstantiate', 'null, null, 0', 'VersionTooOldError 12.0 11.8'],
  [11080, 'cudaGraphAddNode', 'null, null, null, null, 0, null', 'VersionTooOldError 13.0 11.8'],
  [12060, 'cudaLibraryUnload', 'null', 'VersionTooOldError 12.8 12.6'],
  // The function has the library's version, but the library lacks it, so no version would help.
  [12060, 'cudaGetKernel', 'null, null', 'SymbolNotFoundError undefined 12.6'],
])('libcudart %i: %s(%s) is %s', (version, name, parameters, expected) => {
  const lines = run(
    version,
    `import { ${name} } from '@shoal/cuda-sys/runtime'
     try { ${name}(${parameters}) } catch (error) { console.log(error.name, error.since, error.installed) }`,
  )
  expect(lines).toEqual([expected])
})

test('a libcudart 11 that needs a driver for its version is recognized by its functions', () => {
  const library = compileStub(
    'runtime-silent',
    `int cudaRuntimeGetVersion(int* version) { return 35; }
     int cudaCtxResetPersistingL2Cache(void) { return 0; }
     int cudaLaunchKernelExC(void* config, void* f, void** args) { return 0; }
     int cudaMemAdvise(void* p, size_t n, int advice, int device) { dprintf(1, "called\\n"); return 0; }`,
  )
  const lines = runModule(
    `import { cudaCtxResetPersistingL2Cache, cudaInitDevice, cudaMemAdvise, runtime } from '@shoal/cuda-sys/runtime'
     console.log(cudaCtxResetPersistingL2Cache(), runtime.version)
     for (const call of [() => cudaMemAdvise(null, 1, 1, new Uint8Array(8)), () => cudaInitDevice(0, 0, 0)])
       try { call() } catch (error) { console.log(error.name, error.since, error.installed) }`,
    { SHOAL_CUDART_LIBRARY: library },
  )
  expect(lines).toEqual(['0 11080', 'VersionTooOldError 13.0 11.8', 'VersionTooOldError 12.0 11.8'])
})

test('per-thread mode uses the per-thread variants', () => {
  const module = `import { cudaMemcpy } from '@shoal/cuda-sys/runtime'
     cudaMemcpy(null, null, 3, 4)`
  expect(run(13000, module)).toEqual(['legacy copy 3 4'])
  expect(run(13000, module, { SHOAL_STREAM_MODE: 'per-thread' })).toEqual(['per-thread copy 3 4'])
})

test('structs by value and floats arrive in libcudart', ({ skip }) => {
  if (process.platform !== 'linux') return skip('the stand-in library is built with gcc on Linux')
  const lines = run(
    13000,
    `import * as r from '@shoal/cuda-sys/runtime'
     const dim = (x, y, z) => r.dim3.allocate({ x, y, z })
     r.cudaMemPrefetchAsync(0x10n, 20, r.cudaMemLocation.allocate({ type: 1, id: -5 }), 7, r.cudaStream_t(0x30n))
     r.cudaMemset3D(r.cudaPitchedPtr.allocate({ ptr: 0x40n, pitch: 50n, xsize: 60n, ysize: 70n }), -8, r.cudaExtent.allocate({ width: 9n, height: 10n, depth: 11n }))
     r.cudaLaunchKernel(0x1n, dim(2, 3, 4), dim(5, 6, 4294967295), 0x7n, 8, 0x9n)
     const handle = new Uint8Array(64); handle[0] = 1; handle[63] = 255
     r.cudaIpcOpenMemHandle(new BigUint64Array(1), handle, 1)
     console.log(JSON.stringify(r.cudaCreateChannelDesc(8, 9, 10, -11, 2)))`,
  )
  expect(lines).toEqual([
    'prefetch 10 20 1 -5 7 30',
    'set 40 50 60 70 -8 9 10 11',
    'launch 1 2 3 4 5 6 4294967295 7 8 9',
    'open 1 255 1',
    '{"x":8,"y":9,"z":10,"w":-11,"f":2}',
  ])
})

test('text results are addresses for readCString', () => {
  const lines = run(
    13000,
    `import { cudaGetErrorName } from '@shoal/cuda-sys/runtime'
     import { readCString } from '@shoal/ffi'
     console.log(readCString(cudaGetErrorName(-3)))`,
  )
  expect(lines).toEqual(['minus three'])
})

test('floats by value are passed to the driver like other arguments', () => {
  const library = compileStub(
    'floats',
    `int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
     int cuTexRefSetMipmapLevelClamp(void* ref, float low, float high) { dprintf(1, "%llx %g %g\\n", (unsigned long long)ref, low, high); return 0; }`,
  )
  const lines = runModule(
    `import { cuTexRefSetMipmapLevelClamp } from '@shoal/cuda-sys/driver'
     import { readFileSync } from 'node:fs'
     cuTexRefSetMipmapLevelClamp(0x12n, 0.5, -2.25)
     console.log(readFileSync('/proc/self/maps', 'utf8').includes('koffi'))`,
    { SHOAL_CUDA_LIBRARY: library },
  )
  expect(lines).toEqual(['12 0.5 -2.25', 'false'])
})
