import { expect, test } from 'vitest'
import { compileStub, moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

// A replacement for libcuda that records requested functions and their arguments.
const source = `
int cuDriverGetVersion(int* version) { *version = VERSION; return 0; }

static int alloc(uint64_t* pointer, uint64_t bytes) { *pointer = 0x1000; dprintf(1, "alloc %llu\\n", (unsigned long long)bytes); return 0; }
static int copy(uint64_t to, const void* from, uint64_t bytes) { dprintf(1, "copy %llx %llu\\n", (unsigned long long)to, (unsigned long long)bytes); return 0; }
static int context(uint64_t stream, uint64_t* context) { dprintf(1, "context of %llu\\n", (unsigned long long)stream); return 0; }
static int contexts(uint64_t stream, uint64_t* context, uint64_t* green) { dprintf(1, "contexts of %llu\\n", (unsigned long long)stream); return 0; }

int cuMemPrefetchAsync(uint64_t at, uint64_t bytes, int device, uint64_t stream) { dprintf(1, "prefetch %llx %llu %d\\n", (unsigned long long)at, (unsigned long long)bytes, device); return 0; }
int cuMemAlloc(void) { dprintf(1, "the alloc of CUDA 2\\n"); return 1; }
int cuMemAlloc_v2(uint64_t* pointer, uint64_t bytes) { dprintf(1, "exported "); return alloc(pointer, bytes); }
int cuMemcpyHtoD_v2(uint64_t to, const void* from, uint64_t bytes) { dprintf(1, "legacy "); return copy(to, from, bytes); }
int cuMemcpyHtoD_v2_ptds(uint64_t to, const void* from, uint64_t bytes) { dprintf(1, "per-thread "); return copy(to, from, bytes); }

static uint64_t current = 7;
int cuCtxGetCurrent(uint64_t* context) { *context = current; return 0; }
int cuCtxSetCurrent(uint64_t context) { dprintf(1, "current %llu\\n", (unsigned long long)context); current = context; return 0; }

#if VERSION >= 12000
int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
  dprintf(1, "ask %s %d %llu\\n", symbol, version, (unsigned long long)flags);
  *status = 0;
  if (!strcmp(symbol, "cuMemAlloc")) *function = alloc;
  else if (!strcmp(symbol, "cuMemcpyHtoD")) *function = copy;
  else if (!strcmp(symbol, "cuStreamGetCtx")) *function = version >= 12050 ? (void*)contexts : (void*)context;
  else if (!strcmp(symbol, "cuCtxGetCurrent")) *function = cuCtxGetCurrent;
  else if (!strcmp(symbol, "cuCtxSetCurrent")) *function = cuCtxSetCurrent;
  else if (!strcmp(symbol, "cuGraphClone")) { *function = 0; *status = 2; }
  else { *function = 0; *status = 1; }
  return 0;
}
#endif
`

const stubs = new Map<number, string>()
function stub(version: number): string {
  const known = stubs.get(version) ?? compileStub(`driver-${version}`, source, { VERSION: version })
  stubs.set(version, known)
  return known
}

function run(version: number, module: string, environment: Record<string, string> = {}): string[] {
  return runModule(module, { SHOAL_CUDA_LIBRARY: stub(version), ...environment })
}

test('a function is requested at its typed version, and its first call passes the arguments', () => {
  const lines = run(
    13000,
    `import { cuMemAlloc, cuMemcpyHtoD } from '@shoal/cuda-sys/driver'
     const cell = new BigUint64Array(1)
     console.log(cuMemAlloc(cell, 12345), cell[0])
     cuMemAlloc(cell, 54321)
     cuMemcpyHtoD(0xabcn, new Uint8Array(8), 8)`,
  )
  expect(lines).toEqual([
    'ask cuMemAlloc 3020 1',
    'alloc 12345',
    '0 4096n',
    'alloc 54321',
    'ask cuMemcpyHtoD 3020 1',
    'copy abc 8',
  ])
})

test('per-thread mode requests the per-thread variant if one exists and the driver is new enough', () => {
  const lines = run(
    13000,
    `import { cuMemAlloc, cuMemcpyHtoD } from '@shoal/cuda-sys/driver'
     cuMemAlloc(new BigUint64Array(1), 1)
     cuMemcpyHtoD(0xabcn, new Uint8Array(8), 8)`,
    { SHOAL_STREAM_MODE: 'per-thread' },
  )
  expect(lines).toEqual(['ask cuMemAlloc 3020 1', 'alloc 1', 'ask cuMemcpyHtoD 7000 2', 'copy abc 8'])
})

test('an earlier ABI is requested at its version in both stream modes', () => {
  const module = `import { cuCtxCreate_v3020, cuMemcpyHtoD_v2000 } from '@shoal/cuda-sys/driver'
     cuMemcpyHtoD_v2000(0xabc, new Uint8Array(8), 8)
     try { cuCtxCreate_v3020(new BigUint64Array(1), 0, 0) } catch (error) { console.log(error.name, error.symbol) }`
  const expected = [
    'ask cuMemcpyHtoD 2000 1',
    'copy abc 8',
    'ask cuCtxCreate 3020 1',
    'SymbolNotFoundError cuCtxCreate',
  ]
  expect(run(13000, module)).toEqual(expected)
  expect(run(13000, module, { SHOAL_STREAM_MODE: 'per-thread' })).toEqual(expected)
})

test('an earlier ABI works in a driver too old for the newest ABI', () => {
  const lines = run(
    11040,
    `import { cuMemAlloc_v2000, cuMemPrefetchAsync, cuMemPrefetchAsync_v8000 } from '@shoal/cuda-sys/driver'
     cuMemAlloc_v2000(new Uint32Array(1), 8)
     cuMemPrefetchAsync_v8000(0x10n, 20, -1, null)
     try { cuMemPrefetchAsync(0x10n, 20, new Uint8Array(8), 0, null) } catch (error) { console.log(error.name, error.since, error.installed) }`,
  )
  expect(lines).toEqual(['the alloc of CUDA 2', 'prefetch 10 20 -1', 'VersionTooOldError 12.2 11.4'])
})

test('two versions of one function are separate functions', () => {
  const lines = run(
    13000,
    `import { cuStreamGetCtx, cuStreamGetCtx_v2 } from '@shoal/cuda-sys/driver'
     const cells = new BigUint64Array(2)
     cuStreamGetCtx_v2(5n, cells, cells)
     cuStreamGetCtx(6n, cells)`,
  )
  expect(lines).toEqual(['ask cuStreamGetCtx 12050 1', 'contexts of 5', 'ask cuStreamGetCtx 9020 1', 'context of 6'])
})

test('a function newer than the driver is refused without a lookup, with the same error each time', () => {
  const lines = run(
    12000,
    `import { cuMemAdvise } from '@shoal/cuda-sys/driver'
     const errors = []
     for (let i = 0; i < 2; i++) try { cuMemAdvise(0n, 1, 1, new Uint8Array(8)) } catch (error) { errors.push(error) }
     console.log(errors[0].name, errors[0].api, errors[0].since, errors[0].installed, errors[0] === errors[1])`,
  )
  expect(lines).toEqual(['VersionTooOldError cuMemAdvise 12.2 12.0 true'])
})

test('a new driver that lacks a name, or has only a later signature, is not reported as too old', () => {
  const lines = run(
    13000,
    `import { cuGraphClone, cuGraphDestroy } from '@shoal/cuda-sys/driver'
     for (const call of [() => cuGraphDestroy(1n), () => cuGraphDestroy(1n), () => cuGraphClone(new BigUint64Array(1), 1n)]) {
       try { call() } catch (error) { console.log(error.name, error.symbol, error.installed, error.signatureOf) }
     }
     try { cuGraphClone(new BigUint64Array(1), 1n) } catch (error) { console.log(error.message) }`,
  )
  expect(lines).toEqual([
    'ask cuGraphDestroy 10000 1',
    'SymbolNotFoundError cuGraphDestroy 13.0 undefined',
    'SymbolNotFoundError cuGraphDestroy 13.0 undefined',
    'ask cuGraphClone 10000 1',
    'SymbolNotFoundError cuGraphClone 13.0 10.0',
    `NVIDIA CUDA driver 13.0 (${stub(13000)}) has no function cuGraphClone with the signature that it has in 10.0. ` +
      'Another version of the library, or another platform, may have it; check with has() before the call.',
  ])
})

test('a function that the driver lacks is looked up once, however often it is called', () => {
  const lines = run(
    13000,
    `import { cuGraphClone, cuGraphCreate } from '@shoal/cuda-sys/driver'
     const thrown = (call) => { try { call() } catch (error) { return error } }
     for (const call of [() => cuGraphClone(null, 1n), () => cuGraphCreate(null, 0)]) {
       const errors = new Set(Array.from({ length: 1000 }, () => thrown(call)))
       for (const error of errors) console.log(error.code)
     }`,
  )
  expect(lines).toEqual([
    'ask cuGraphClone 10000 1',
    'SHOAL_SYMBOL_NOT_FOUND',
    'ask cuGraphCreate 10000 1',
    'SHOAL_SYMBOL_NOT_FOUND',
  ])
})

test('a driver without cuGetProcAddress_v2 is used through its exported symbols of the same ABI', () => {
  const module = `import { cuMemAlloc, cuMemcpyHtoD } from '@shoal/cuda-sys/driver'
     cuMemAlloc(new BigUint64Array(1), 1)
     cuMemcpyHtoD(0xabcn, new Uint8Array(8), 8)`
  expect(run(11040, module)).toEqual(['exported alloc 1', 'legacy copy abc 8'])
  expect(run(11040, module, { SHOAL_STREAM_MODE: 'per-thread' })).toEqual(['exported alloc 1', 'per-thread copy abc 8'])
})

test('the first call of a function may be recorded for another thread', () => {
  const lines = run(
    13000,
    `import { cuMemAlloc } from '@shoal/cuda-sys/driver'
     import { NativeMemory, offThread } from '@shoal/ffi'
     const cell = NativeMemory.allocate(8)
     console.log(JSON.stringify(await offThread({}, () => cuMemAlloc(cell, 77))), cell.u64[0])`,
  )
  expect(lines).toEqual(['ask cuMemAlloc 3020 1', 'alloc 77', '[0] 4096n'])
})

test('a context set for the next call is not used up by the symbol lookup', () => {
  const lines = run(
    13000,
    `import { cuMemAlloc } from '@shoal/cuda-sys/driver'
     import { ensureContextFunctions } from '@shoal/cuda-sys'
     import { callInContext } from '@shoal/ffi'
     ensureContextFunctions()
     callInContext(9n)
     cuMemAlloc(new BigUint64Array(1), 77)`,
  )
  expect(lines.slice(2)).toEqual(['ask cuMemAlloc 3020 1', 'current 9', 'alloc 77', 'current 7'])
})

test('withContext makes a context current and restores the previous one, also when the function throws', () => {
  const lines = run(
    13000,
    `import { withContext } from '@shoal/cuda-sys'
     console.log(withContext(9n, () => 'inside'))
     try { withContext(9n, () => { throw new Error('thrown') }) } catch (error) { console.log(error.message) }
     withContext(7n, () => console.log('already current'))`,
  )
  expect(lines.filter((line) => !line.startsWith('ask'))).toEqual([
    'current 9',
    'current 7',
    'inside',
    'current 9',
    'current 7',
    'thrown',
    'already current',
  ])
})
