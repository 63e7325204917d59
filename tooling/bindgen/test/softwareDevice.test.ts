import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emitEntryPoints, emitHeaders, emitUnsupported, headerFiles } from '../src/emit/softwareDevice.js'
import type { DeviceLibraryName, LibrarySpecFile } from '../src/spec/types.js'
import { libraryNames, readSpec, root, workspace } from './environment.js'

const specs = libraryNames.map(readSpec)
const [driver, runtime] = specs as [LibrarySpecFile, LibrarySpecFile]
const { names, defined } = workspace.readSoftwareDevice()

const textOf = (library: DeviceLibraryName, words: readonly string[]): string =>
  emitHeaders(specs, new Set(words)).get(headerFiles[library]) as string

test("the committed headers and entry points equal the output of the specs and the software device's sources", () => {
  const files = [
    ...emitHeaders(specs, names),
    ...emitEntryPoints(driver, defined),
    ...emitUnsupported(driver, 'driver', defined),
    ...emitUnsupported(runtime, 'runtime', defined),
  ]
  expect(files.length).toBe(7)
  for (const [path, text] of files) expect(readFileSync(join(root, 'packages', path), 'utf8')).toBe(text)
})

test('a generated header has exactly the named functions, after the types they need', () => {
  const text = textOf('driver', ['cuMemSetAccess', 'CUmemAccessDesc'])
  const types = [...text.matchAll(/^(?:enum|struct|typedef \w+) (\w+)[; :{]/gm)].map(([, name]) => name)
  expect(types).toContain('CUmemAccessDesc')
  expect(text.indexOf('struct CUmemLocation {')).toBeLessThan(text.indexOf('  CUmemLocation location;'))
  expect(text).toContain(
    'SHOAL_EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count);',
  )
  expect(text).toContain('static_assert(sizeof(CUmemLocation) == 8, "CUmemLocation");')
  expect(text).not.toContain('cuMemGetAccess')
  expect(textOf('driver', []).split('\n').length).toBeLessThan(5)
})

test('aliases, enumerators, constants, arrays and unnamed members are declared as in C', () => {
  const text = textOf('driver', [
    'cuStreamQuery',
    'CU_LIMIT_STACK_SIZE',
    'CU_STREAM_LEGACY',
    'CUuuid',
    'CUmemAllocationProp',
  ])
  for (const name of ['cuStreamQuery', 'cuStreamQuery_ptsz'])
    expect(text).toContain(`SHOAL_EXPORT CUresult ${name}(CUstream hStream);`)
  expect(text).toContain('enum CUlimit : int {')
  expect(text).toContain('#define CU_STREAM_LEGACY ((CUstream)1)')
  expect(text).toContain('  char bytes[16];')
  expect(text).toContain('  CUmemAllocationProp_allocFlags allocFlags;')
})

test('the runtime header uses the types of the driver, and NCCL has separate initializers', () => {
  expect(textOf('runtime', ['cudaMemPoolSetAccess'])).toContain('typedef CUmemAccessDesc cudaMemAccessDesc;')
  expect(textOf('nccl', ['NCCL_CONFIG_INITIALIZER', 'ncclConfig_t'])).toMatch(
    /#define NCCL_CONFIG_INITIALIZER \{sizeof\(ncclConfig_t\), 3405692655, \d+, -2147483648, /,
  )
})

test('entry points are all Linux ABIs with the versions of the spec, and undefined ones are marked', () => {
  const defined = new Set(['cuCtxDestroy', 'cuCtxDestroy_v2', 'cuMemcpyAsync', 'cuNothing'])
  const rows = [...emitEntryPoints(driver, defined).values()].join('').split('\n').slice(1, -1)
  expect(rows.filter((row) => !row.startsWith('SHOAL_NONE')).sort()).toEqual([
    'SHOAL_ONE("cuCtxDestroy", 2000, cuCtxDestroy)',
    'SHOAL_ONE("cuCtxDestroy", 4000, cuCtxDestroy_v2)',
    'SHOAL_TWO("cuMemcpyAsync", 4000, cuMemcpyAsync, 7000, cuMemcpyAsync_ptsz)',
  ])
  expect(rows).toContain('SHOAL_NONE("cuArrayCreate", 3020, 0)')
  expect(rows).toContain('SHOAL_NONE("cuGraphLaunch", 10000, 10000)')
  expect(rows.join()).not.toContain('cuWGLGetDevice')
  expect(rows.length).toBe(driver.functions.length - 1)
})

test('undefined functions are listed once, plus once for per-thread default streams', () => {
  const [text] = [...emitUnsupported(runtime, 'runtime', new Set(['cudaMalloc', 'cudaMemcpyAsync'])).values()] as [
    string,
  ]
  const names = text.split('\n').slice(1, -1)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toContain('SHOAL_UNSUPPORTED(cudaMemcpy)')
  expect(names).toContain('SHOAL_UNSUPPORTED(cudaMemcpy_ptds)')
  for (const defined of ['cudaMalloc', 'cudaMemcpyAsync', 'cudaMemcpyAsync_ptsz', 'cudaWGLGetDevice'])
    expect(names).not.toContain(`SHOAL_UNSUPPORTED(${defined})`)
})
