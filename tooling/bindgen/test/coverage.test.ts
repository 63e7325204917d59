import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { listFiles } from '../src/files.js'
import {
  generatedFolders,
  hasHeader,
  headerText,
  type LibraryName,
  libraryNames,
  noMatchingHeaders,
  prelude,
  preprocessCxx,
  readExported,
  readSpec,
} from './environment.js'

/** The number of functions in a small header. Other headers have more than fifty. */
const fewest: Partial<Record<LibraryName, number>> = { nvrtc: 24, nvjitlink: 16, cublasLt: 49 }

/** The functions that a library's headers declare, read from their text. Independent of the generator. */
function declaredFunctions(name: LibraryName): Set<string> {
  if (name === 'nvshmem') return declaredByNvshmem()
  const blas = /\bCUBLASWINAPI\s+(cublas[A-Z]\w*)\s*\(/g
  const pattern = {
    driver: /\bCUDAAPI\s+(cu[A-Z]\w*)\s*\(/g,
    runtime: /\bCUDARTAPI(?:_CDECL)?\s+(cuda[A-Z]\w*)\s*\(/g,
    nccl: /^\s*(?:NCCL_EXTERN_C __host__ )?(?:ncclResult_t|ncclTeam_t|const char\*|int|void)\s+(nccl[A-Z]\w*)\s*\(/gm,
    nvrtc: /^(?:nvrtcResult|const char \*)\s*(nvrtc[A-Z]\w*)\s*\(/gm,
    cublas: blas,
    cublasLt: blas,
    nvjitlink: /^(?:static inline|extern) nvJitLinkResult\s+(nvJitLink[A-Z]\w*)\s*\(/gm,
    nvml: /\bDECLDIR\s+(?:char\s*\*\s*)?(nvml[A-Z]\w*)\s*\(/g,
  }[name]
  const declared = new Set<string>()
  for (const file of readSpec(name).headers) {
    const text = headerText(name, file).replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    // Code for devices, C++ templates and repeated declarations for the library's own sources are not part of the
    // interface.
    const hidden = {
      runtime: /#if defined\((?:__CUDACC__|__CUDA_API_VERSION_INTERNAL)\)\n/,
      nvrtc: /#if NVRTC_GET_TYPE_NAME/,
    }
    const visible = name === 'runtime' || name === 'nvrtc' ? text.split(hidden[name])[0] : text
    for (const match of (visible as string).matchAll(pattern)) declared.add(match[1] as string)
  }
  return declared
}

/**
 * NVSHMEM's headers repeat macros over types, so g++'s preprocessor expands them. nvshmem.test.ts checks why the host
 * library lacks some of the declared functions.
 */
function declaredByNvshmem(): Set<string> {
  const exported = readExported('nvshmem')
  const declared = [...preprocessCxx(prelude.nvshmem).matchAll(/\b(nvshmem\w+)\s*\(/g)]
  return new Set(declared.map((match) => match[1] as string).filter((name) => exported.has(name)))
}

describe.each(libraryNames)('coverage of %s', (name) => {
  const spec = readSpec(name)
  const sources = listFiles(generatedFolders[name]).map((path) =>
    readFileSync(join(generatedFolders[name], path), 'utf8'),
  )
  const exported = sources.flatMap((text) =>
    [...text.matchAll(/^export (?:function|const) (\w+)/gm)].map((match) => match[1] as string),
  )

  test('includes every function that the headers declare', ({ skip }) => {
    const reason = noMatchingHeaders(name)
    if (reason !== undefined) return skip(reason)
    const declared = declaredFunctions(name)
    expect(declared.size).toBeGreaterThanOrEqual(fewest[name] ?? 51)
    const known = new Set(
      spec.functions.flatMap(({ name: exportedName, symbol, perThreadSymbol }) => [
        exportedName,
        symbol,
        perThreadSymbol ?? symbol,
      ]),
    )
    for (const { symbol, nature } of spec.unbound ?? []) if (nature === 'function') known.add(symbol)
    expect([...declared].filter((entry) => !known.has(entry))).toEqual([])
  })

  test('exports every function of the spec once', () => {
    const count = new Map<string, number>()
    for (const entry of exported) count.set(entry, (count.get(entry) ?? 0) + 1)
    expect(spec.functions.map((entry) => entry.name).filter((entry) => count.get(entry) !== 1)).toEqual([])
  })

  test('exports every enumeration, struct and constant of the spec', () => {
    const known = new Set(exported)
    const wanted = [...spec.enums, ...spec.structs, ...spec.constants, ...spec.handles].map((entry) => entry.name)
    expect(wanted.filter((entry) => !known.has(entry))).toEqual([])
  })

  test('has no exported name with two meanings', () => {
    expect(exported.filter((entry, index) => exported.indexOf(entry) !== index)).toEqual([])
  })

  test('has no generated file of excessive size', () => {
    for (const text of sources) expect(text.split('\n').length).toBeLessThan(1000)
  })
})

test('the driver spec has exactly the ABIs with function types in the headers', ({ skip }) => {
  const reason = noMatchingHeaders('driver')
  if (reason !== undefined) return skip(reason)
  const { functions, headers } = readSpec('driver')
  const types = headers
    .filter((file) => file.endsWith('Typedefs.h'))
    .flatMap((file) => [...headerText('driver', file).matchAll(/\*\s*PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\)\s*\(/g)])
    .map(([, name, version, variant]) => `${name}@${version}${variant ?? ''}`)
  const bound = functions.flatMap(({ lookup, since, perThreadSince, perThreadSymbol }) => [
    `${lookup}@${since}`,
    ...(perThreadSymbol ? [`${lookup}@${perThreadSince}${perThreadSymbol.slice(-5)}`] : []),
  ])
  expect([...new Set(bound)].sort()).toEqual([...new Set(types)].sort())
})

test.each(['driver', 'runtime', 'nvrtc', 'nvjitlink', 'cublas', 'cublasLt', 'nvml'] as const)(
  '%s: every function has the header that declares it',
  (name) => {
    const { functions, headers } = readSpec(name)
    expect(functions.filter(({ header }) => !headers.includes(header as string)).map((entry) => entry.name)).toEqual([])
    const used = new Set(functions.map(({ header }) => header))
    expect(headers.filter((file) => !used.has(file) && !file.endsWith('Typedefs.h'))).toEqual([])
  },
)

test('nccl: every function has its declaring header, or another source', () => {
  const { functions, headers } = readSpec('nccl')
  for (const { name, header, undeclared } of functions) {
    if (undeclared === undefined) expect(headers, name).toContain(header)
    else expect([header, undeclared.length > 40], name).toEqual([undefined, true])
  }
  expect(functions.filter(({ undeclared }) => undeclared).map(({ name }) => name)).toEqual([
    'ncclResetDebugInitInternal',
  ])
})

test('nccl: inline functions of the headers are not bound, with a reason', ({ skip }) => {
  const reason = noMatchingHeaders('nccl')
  if (reason !== undefined) return skip(reason)
  const { functions, headers, unbound = [] } = readSpec('nccl')
  const inline = headers.flatMap((file) =>
    [...headerText('nccl', file).matchAll(/^NCCL_EXTERN_C NCCL_HOST_DEVICE_INLINE [\w ]+ (nccl\w+)\(/gm)].map(
      (match) => match[1] as string,
    ),
  )
  expect(inline).toContain('ncclTeamInnerFactor')
  const told = unbound.filter(({ nature }) => nature === 'inline')
  expect(told.map(({ symbol }) => symbol).sort()).toEqual(inline.sort())
  for (const { symbol, reason: why, exported: isExported } of unbound) {
    expect([why.length > 10, isExported], symbol).toEqual([true, symbol === 'pnccl{name}'])
    expect(functions.map(({ name }) => name)).not.toContain(symbol)
  }
})

test('nvml: each ABI is exported once, the newest under the plain name and earlier ones under their numbers', () => {
  const { functions } = readSpec('nvml')
  const byName = new Map(functions.map((entry) => [entry.name, entry]))
  const symbolOf = (name: string) => byName.get(name)?.symbol
  expect(new Set(functions.map(({ symbol }) => symbol)).size).toBe(functions.length)
  expect([symbolOf('nvmlInit'), symbolOf('nvmlInit_v1')]).toEqual(['nvmlInit_v2', 'nvmlInit'])
  // C distinguishes these two.
  expect(symbolOf('nvmlDeviceGetMemoryInfo')).toBe('nvmlDeviceGetMemoryInfo')
  expect(symbolOf('nvmlDeviceGetMemoryInfo_v2')).toBe('nvmlDeviceGetMemoryInfo_v2')
  const earlier = functions.filter(({ supersededBy }) => supersededBy !== undefined)
  expect(earlier.length).toBeGreaterThan(20)
  for (const { name, symbol, since, supersededBy = '' } of earlier) {
    expect(name).toBe(symbol === supersededBy ? `${symbol}_v1` : symbol)
    expect(byName.get(supersededBy)?.since, name).toBeGreaterThanOrEqual(since)
    expect(byName.get(supersededBy)?.supersededBy, name).toBeUndefined()
  }
})

test('nvml: the version constant of a struct is its size and its version', () => {
  const { constants, structs } = readSpec('nvml')
  const sizes = new Map(structs.flatMap(({ name, aliases, size }) => [name, ...aliases].map((each) => [each, size])))
  const versions = constants.filter(({ name }) => /^nvml\w+_v\d+$/.test(name))
  expect(versions.length).toBeGreaterThan(50)
  for (const { name, value } of versions) {
    const version = Number(/\d+$/.exec(name)?.[0])
    expect(Number(value), name).toBe((sizes.get(`${name}_t`) as number) + version * 2 ** 24)
  }
})

test('driver: an earlier ABI is exported under its version and names its successor', () => {
  const { functions } = readSpec('driver')
  const byName = new Map(functions.map((entry) => [entry.name, entry]))
  for (const { name, lookup, since, supersededBy } of functions) {
    if (supersededBy === undefined) continue
    expect(name).toBe(`${lookup}_v${since}`)
    expect(byName.get(supersededBy)?.since, name).toBeGreaterThan(since)
    expect(byName.get(supersededBy)?.supersededBy, name).toBeUndefined()
  }
})

test.for([
  ['driver', ['generated_cuda_meta.h', 'generated_cudaGL_meta.h', 'generated_cudaVDPAU_meta.h']],
  [
    'runtime',
    ['generated_cuda_runtime_api_meta.h', 'generated_cuda_gl_interop_meta.h', 'generated_cuda_vdpau_interop_meta.h'],
  ],
] as const)("%s: every symbol in the vendor's parameter lists for tools is bound", ([name, files], { skip }) => {
  const reason = noMatchingHeaders(name)
  if (reason !== undefined) return skip(reason)
  if (files.some((file) => !hasHeader(name, file))) return skip("no headers of CUPTI beside CUDA's")
  const listed = files.flatMap((file) =>
    [...headerText(name, file).matchAll(/\b(cu\w+?)(?:_v\d{4,5})?_params_st\b/g)].map((match) => match[1] as string),
  )
  const bound = new Set(
    readSpec(name).functions.flatMap(({ symbol, perThreadSymbol }) => [symbol, perThreadSymbol ?? symbol]),
  )
  expect(listed.length).toBeGreaterThan(300)
  expect(listed.filter((symbol) => !bound.has(symbol))).toEqual([])
})

test.for([
  ['driver', /\bcu[A-Z]\w*/],
  ['runtime', /\b(?:make_)?cuda[A-Z]\w*/],
] as const)('%s: functions defined in a header are bound, or excluded with a reason', ([name, pattern], { skip }) => {
  const reason = noMatchingHeaders(name)
  if (reason !== undefined) return skip(reason)
  const { functions, unbound = [], headers } = readSpec(name)
  const inline = new RegExp(`static\\s+(?:__inline__|inline)[^({;]*?(${pattern.source})\\s*\\(`, 'g')
  const defined = [...headers, ...(name === 'runtime' ? ['driver_functions.h'] : [])].flatMap((file) =>
    [...headerText(name, file).matchAll(inline)].map((match) => match[1] as string),
  )
  const known = new Set([...functions.map((entry) => entry.name), ...unbound.map(({ symbol }) => symbol)])
  expect(defined.length).toBeGreaterThan(0)
  expect(defined.filter((entry) => !known.has(entry))).toEqual([])
  expect(unbound.filter(({ nature, symbol }) => nature === 'inline' && !defined.includes(symbol))).toEqual([])
})
