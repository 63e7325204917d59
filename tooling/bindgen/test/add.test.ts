import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { readAddition } from '../src/add.js'
import { emitLibrary } from '../src/emit/library.js'
import { compareFolder } from '../src/files.js'
import { type Library, Workspace } from '../src/libraries.js'
import { pairVersions } from '../src/parse/driver.js'
import { productOf } from '../src/parse/headers.js'
import { describeBreaks, describeChanges } from '../src/spec/changes.js'
import { History } from '../src/spec/history.js'
import type { FunctionSpec, LibrarySpecFile, StructSpec } from '../src/spec/types.js'
import { headers, type LibraryName, noClang, noMatchingHeaders, readSpec, root, workspace } from './environment.js'
import { noCompiler } from './proof.js'

const scratch = scratchFolder()

/** Changes of one header. Each pattern must match exactly once. */
type Edits = Readonly<Record<string, readonly (readonly [pattern: RegExp, replacement: string])[]>>

interface Doctored {
  readonly version: string
  readonly since: number
  readonly edits: Edits
  readonly added: string
  readonly enumerator: readonly [enumeration: string, member: string]
  /** the struct that gets an additional member `doctored` */
  readonly grown?: string
  /** problems that must be printed as unknown */
  readonly unknown: readonly RegExp[]
}

const cublasVersion = [
  [/(#define CUBLAS_VER_MINOR) 1/, '$1 2'],
  [/(#define CUBLAS_VER_PATCH) 1/, '$1 0'],
] as const
const cudaVersion = [/(#define CUDA(?:RT)?_VERSION) +13000/, '$1 13010'] as const

// One function, one enumerator and one struct member in addition to the real headers.
const doctored: Readonly<Record<LibraryName, Doctored>> = {
  driver: {
    version: 'cuda=13.1',
    since: 13010,
    edits: {
      'cuda.h': [
        cudaVersion,
        [/^(CUresult CUDAAPI cuDriverGetVersion\(.*)$/m, '$1\nCUresult CUDAAPI cuDoctored(int *value, CUdevice dev);'],
        [/^( +CU_LIMIT_MAX_L2_FETCH_GRANULARITY += 0x05,)/m, '$1 CU_LIMIT_DOCTORED = 0x42,'],
        [/^(typedef struct CUdevprop_st \{)/m, '$1 int doctored;'],
      ],
      'cudaTypedefs.h': [
        [
          /^(typedef CUresult \(CUDAAPI \*PFN_cuDriverGetVersion_v2020)/m,
          'typedef CUresult (CUDAAPI *PFN_cuDoctored_v13010)(int *value, CUdevice dev);\n$1',
        ],
      ],
    },
    added: 'cuDoctored',
    enumerator: ['CUlimit', 'CU_LIMIT_DOCTORED'],
    grown: 'CUdevprop',
    unknown: [
      /CUdevprop has other fields in old places; .*taken by cuDeviceGetProperties/,
      /what CUDA 13\.1 exports: .*compared with libcuda of driver 580\.159/,
    ],
  },
  runtime: {
    version: 'cuda=13.1',
    since: 13010,
    edits: {
      'cuda_runtime_api.h': [
        [/(#define CUDART_VERSION) +13000/, '$1 13010'],
        [
          /^(extern __host__ cudaError_t CUDARTAPI cudaDriverGetVersion\(.*)$/m,
          '$1\nextern __host__ cudaError_t CUDARTAPI cudaDoctored(size_t count, int *mystery);',
        ],
      ],
      'driver_types.h': [
        [/^( +cudaLimitMaxL2FetchGranularity += 0x05,)/m, '$1 cudaLimitDoctored = 0x42,'],
        [/(struct __device_builtin__ cudaPos\s*\{[^}]*)\}/, '$1 size_t doctored; }'],
      ],
    },
    added: 'cudaDoctored',
    enumerator: ['cudaLimit', 'cudaLimitDoctored'],
    grown: 'cudaPos',
    unknown: [
      /cudaDoctored: no rule .* whether mystery is one or as many/,
      /cudaPos grew from 24 to 32 bytes/,
      /cudaMemcpy3DParms has other fields in old places; .*taken by .*cudaMemcpy3DAsync/,
      /what CUDA 13\.1 exports: .*compared with libcudart 13\.0/,
    ],
  },
  nccl: {
    version: 'nccl=2.31.0',
    since: 23100,
    edits: {
      'nccl.h': [
        [/(#define NCCL_VERSION_CODE) 23007/, '$1 23100'],
        [/^(ncclResult_t +ncclGetVersion\(.*)$/m, '$1\nncclResult_t ncclDoctored(ncclComm_t comm, int* value);'],
        [/(ncclTimeout += +8,)/, '$1 ncclDoctoredError = 42,'],
        [/(int graphStreamOrdering;)/, '$1 int doctored;'],
      ],
    },
    added: 'ncclDoctored',
    enumerator: ['ncclResult_t', 'ncclDoctoredError'],
    grown: 'ncclConfig_t',
    unknown: [/what NCCL 2\.31\.0 exports: .*compared with libnccl 2\.30\.7/],
  },
  nvshmem: {
    version: 'nvshmem=3.5.0',
    since: 30500,
    edits: {
      'non_abi/nvshmem_version.h': [
        [/(#define NVSHMEM_VENDOR_MINOR_VERSION) +4/, '$1 5'],
        [/(#define NVSHMEM_VENDOR_PATCH_VERSION) +5/, '$1 0'],
      ],
      'host/nvshmem_api.h': [[/^(.* nvshmem_n_pes\(.*)$/m, '$1\nint nvshmem_doctored(int *mystery);']],
      'host/nvshmemx_api.h': [[/(NVSHMEMX_INIT_WITH_UNIQUEID = 1 << 3,)/, '$1 NVSHMEMX_INIT_DOCTORED = 1 << 9,']],
      'bootstrap_device_host/nvshmem_uniqueid.h': [
        [/(\} nvshmemx_uniqueid_v1;)/, 'int doctored[4]; $1'],
        [/(sizeof\(nvshmemx_uniqueid_v1\) ==) 128/, '$1 144'],
      ],
    },
    added: 'nvshmem_doctored',
    enumerator: ['nvshmemx_init_flags', 'NVSHMEMX_INIT_DOCTORED'],
    grown: 'nvshmemx_uniqueid_t',
    unknown: [
      /nvshmem_doctored: no rule .* whether mystery is read or written/,
      /nvshmem_doctored: taken to be exported/,
      /nvshmemx_uniqueid_t grew from 128 to 144 bytes; .*taken by nvshmemx_get_uniqueid/,
      /what NVSHMEM 3\.5\.0 exports: .*compared with libnvshmem_host 3\.4\.5/,
    ],
  },
  nvrtc: {
    version: 'nvrtc=13.1',
    since: 13010,
    edits: {
      'cuda.h': [cudaVersion],
      'nvrtc.h': [
        [/^(nvrtcResult nvrtcVersion\(.*)$/m, '$1\nnvrtcResult nvrtcDoctored(int numOptions, int *mystery);'],
        [/(NVRTC_ERROR_CANCELLED = 16,)/, '$1 NVRTC_ERROR_DOCTORED = 42,'],
      ],
    },
    added: 'nvrtcDoctored',
    enumerator: ['nvrtcResult', 'NVRTC_ERROR_DOCTORED'],
    unknown: [
      /nvrtcDoctored: no rule .* whether mystery is one or as many/,
      /what NVRTC 13\.1 exports: .*compared with libnvrtc 13\.0/,
    ],
  },
  nvjitlink: {
    version: 'nvjitlink=13.5',
    since: 13050,
    edits: {
      'nvJitLink.h': [
        [/_13_4\b/g, '_13_5'],
        [/^(extern nvJitLinkResult nvJitLinkVersion\()/m, 'extern nvJitLinkResult nvJitLinkDoctored(int);\n$1'],
        [/(NVJITLINK_INPUT_ANY = 10)/, '$1, NVJITLINK_INPUT_DOCTORED = 42'],
      ],
    },
    added: 'nvJitLinkDoctored',
    enumerator: ['nvJitLinkInputType', 'NVJITLINK_INPUT_DOCTORED'],
    unknown: [/what nvJitLink 13\.5 exports: .*compared with libnvJitLink 13\.4/],
  },
  cublas: {
    version: 'cublas=13.2.0',
    since: 130200,
    edits: {
      'cublas_api.h': [
        ...cublasVersion,
        [/^(void CUBLASWINAPI cublasXerbla\()/m, 'cublasStatus_t CUBLASWINAPI cublasDoctored(int* value);\n$1'],
        [/(CUBLAS_POINTER_MODE_DEVICE = 1)/, '$1, CUBLAS_POINTER_MODE_DOCTORED = 42'],
      ],
    },
    added: 'cublasDoctored',
    enumerator: ['cublasPointerMode_t', 'CUBLAS_POINTER_MODE_DOCTORED'],
    unknown: [/what cuBLAS 13\.2\.0 exports: .*compared with libcublas 13\.1\.1/],
  },
  cublasLt: {
    version: 'cublas=13.2.0',
    since: 130200,
    edits: {
      'cublas_api.h': cublasVersion,
      'cublasLt.h': [
        [/^(cublasStatus_t CUBLASWINAPI cublasLtCreate\()/m, 'size_t CUBLASWINAPI cublasLtDoctored(void);\n$1'],
        [/(CUBLASLT_EMULATION_DESC_STRATEGY = 0,)/, '$1 CUBLASLT_EMULATION_DESC_DOCTORED = 42,'],
        [/(float wavesCount;)/, '$1 int doctored[2];'],
      ],
    },
    added: 'cublasLtDoctored',
    enumerator: ['cublasLtEmulationDescAttributes_t', 'CUBLASLT_EMULATION_DESC_DOCTORED'],
    grown: 'cublasLtMatmulHeuristicResult_t',
    unknown: [
      /cublasLtMatmulHeuristicResult_t has other fields in old places; .*taken by .*cublasLtMatmulAlgoCheck/,
      /what cuBLASLt 13\.2\.0 exports: .*compared with libcublasLt 13\.1\.1/,
    ],
  },
  nvml: {
    version: 'nvml=13.4',
    since: 13040,
    edits: {
      'nvml.h': [
        [/(NVML VERSION: 13)\.3/, '$1.4'],
        [/^(nvmlReturn_t DECLDIR nvmlShutdown\(.*)$/m, '$1\nnvmlReturn_t DECLDIR nvmlDoctored(int *value);'],
        [/(NVML_ERROR_UNINITIALIZED = 1,)/, '$1 NVML_ERROR_DOCTORED = 4242,'],
      ],
    },
    added: 'nvmlDoctored',
    enumerator: ['nvmlReturn_t', 'NVML_ERROR_DOCTORED'],
    unknown: [/what NVML 13\.4 exports: .*compared with libnvidia-ml of driver 555\.58/],
  },
}

/** A copy of the real headers with some edits. Unedited files are links, or copies next to edited files. */
function doctor(name: string, real: string, edits: Edits): string {
  const folder = join(scratch, name, 'include')
  mkdirSync(folder, { recursive: true })
  const edited = new Set(Object.keys(edits).map((file) => file.split('/')[0]))
  for (const entry of readdirSync(real)) {
    if (edited.has(entry)) cpSync(join(real, entry), join(folder, entry), { recursive: true, dereference: true })
    else symlinkSync(join(real, entry), join(folder, entry))
  }
  for (const [file, changes] of Object.entries(edits)) {
    let text = readFileSync(join(folder, file), 'utf8')
    for (const [pattern, replacement] of changes) {
      expect(text, `${file} ${pattern}`).toMatch(pattern)
      text = text.replace(pattern, replacement)
    }
    chmodSync(join(folder, file), 0o644)
    writeFileSync(join(folder, file), text)
  }
  return folder
}

/** A copy of the files that the generator reads in the repository. */
function copyOfRepository(name: string): { root: string; copy: Workspace } {
  const place = join(scratch, name, 'repository')
  for (const part of ['spec', 'abi'])
    cpSync(join(root, 'tooling/bindgen', part), join(place, 'tooling/bindgen', part), { recursive: true })
  return { root: place, copy: new Workspace(place) }
}

function bindgen(...flags: string[]): { status: number | null; output: string } {
  const parameters = [join(root, 'tooling/bindgen/dist/main.js'), ...flags]
  const { status, stdout, stderr } = spawnSync(process.execPath, parameters, { encoding: 'utf8' })
  return { status, output: `${stdout}${stderr}` }
}

describe.for(Object.entries(doctored) as [LibraryName, Doctored][])('later headers of %s', ([name, later]) => {
  const product = productOf(name)
  const both = name === 'driver' || name === 'runtime' ? { ...doctored.driver.edits, ...doctored.runtime.edits } : {}

  test('are added by one command, which prints all unknown facts', { timeout: 300_000 }, ({ skip }) => {
    const reason = noClang() ?? noMatchingHeaders(name)
    if (reason !== undefined) return skip(reason)
    const { root: place, copy } = copyOfRepository(name)
    const folder = doctor(name, headers[product] as string, { ...later.edits, ...both })
    const { status, output } = bindgen('--add', later.version, '--headers', folder, '--root', place)
    expect(status, output).toBe(0)

    const library = copy.libraries.find((each) => each.name === name) as Library
    const [known, after] = [readSpec(name), copy.readSpec(library)]
    expect(after.headerVersion).toBe(later.since)
    // New functions get the added version. No other function changes its version.
    const dates = ({ functions }: LibrarySpecFile) => functions.map(({ name: each, since }) => `${each} ${since}`)
    expect(dates(after).filter((entry) => !dates(known).includes(entry))).toEqual([`${later.added} ${later.since}`])
    expect(after.functions).toHaveLength(known.functions.length + 1)
    const [enumeration, member] = later.enumerator
    expect(after.enums.find((entry) => entry.name === enumeration)?.members.map(([each]) => each)).toContain(member)
    if (later.grown !== undefined) {
      const [was, is] = [known, after].map(({ structs }) => structs.find((entry) => entry.name === later.grown))
      expect(is?.size).toBeGreaterThan(was?.size as number)
      expect(is?.fields.map((field) => field.name)).toContain('doctored')
    }

    expect(output).toMatch(new RegExp(`new functions: ${later.added}\n`))
    expect(output).toMatch(new RegExp(`new enumerators: ${enumeration}\\.${member}\n`))
    for (const pattern of later.unknown) expect(output).toMatch(pattern)

    // Sources, page and spec agree, and earlier decisions stay.
    expect(compareFolder(library.generatedFolder, emitLibrary(after))).toEqual([])
    const newer = after.functions.filter(({ since }) => since > after.exports.version).map((entry) => entry.name)
    expect(newer).toContain(later.added)
    expect(readFileSync(copy.coverageFile, 'utf8')).toContain(
      `| newer than ${after.exports.title} | ${newer.length} | ${newer.map((each) => `\`${each}\``).join(', ')}`,
    )
    const include = product === 'cuda' ? ['--cuda-home', join(folder, '..')] : [`--${product}-include`, folder]
    const again = bindgen('--check', '--only', name, '--root', place, ...include)
    expect(again.output).toBe(`${name}: spec equals headers, sources equal spec\n`)

    // Headers of a version other than the named one are refused.
    const other = bindgen('--add', later.version.replace(/\d+$/, '99'), '--headers', folder, '--root', place)
    expect([other.status, other.output]).toEqual([
      2,
      expect.stringMatching(/: the headers are of .*, not of .*99\d*\n$/),
    ])
    expect(copy.readSpec(library)).toEqual(after)
  })
})

test('an NCCL configuration that grew gets one more layout, and the previous layout keeps its version', {
  timeout: 300_000,
}, ({ skip }) => {
  const reason = noClang() ?? noMatchingHeaders('nccl')
  if (reason !== undefined) return skip(reason)
  const { root: place, copy } = copyOfRepository('layouts')
  const folder = doctor('layouts', headers.nccl as string, doctored.nccl.edits)
  bindgen('--add', 'nccl=2.31.0', '--headers', folder, '--root', place)
  const { structs, versionedStructs } = copy.readSpec(copy.libraries[2] as Library)
  const known = readSpec('nccl').versionedStructs?.[0]?.runs[0]?.layouts ?? []
  expect(versionedStructs?.[0]?.runs[0]?.layouts).toEqual([
    ...known.slice(0, -1),
    { since: 23005, struct: 'ncclConfig_v23005' },
    { since: 23100, struct: 'ncclConfig_t' },
  ])
  expect(structs.find(({ name }) => name === 'ncclConfig_v23005')?.size).toBe(96)
})

describe('adding a version without headers', () => {
  const word = { kind: 'size' } as const
  const call = (name: string, parameters = 1, since = 12000): FunctionSpec => ({
    name,
    symbol: name,
    lookup: name,
    since,
    versions: [since],
    group: '',
    result: { kind: 'void' },
    resultCtype: 'void',
    parameters: Array.from({ length: parameters }, (_, index) => ({
      name: `p${index}`,
      ctype: 'cudaThing *',
      lowered: word,
      direction: 'in',
    })),
  })
  const thing = (...fields: string[]): StructSpec => ({
    name: 'cudaThing',
    aliases: [],
    union: false,
    size: 8 * fields.length,
    alignment: 8,
    fields: fields.map((name, index) => ({ name, ctype: 'size_t', type: { kind: 'u64' }, offset: 8 * index, size: 8 })),
  })
  const small: LibrarySpecFile = {
    format: 1,
    library: 'runtime',
    headerVersion: 13000,
    exports: { title: 'a library', file: 'none', version: 13000 },
    headers: [],
    functions: [call('cudaOld'), call('cudaGone')],
    enums: [
      {
        name: 'cudaError',
        aliases: [],
        signed: false,
        members: [
          ['cudaSuccess', 0],
          ['cudaMoved', 1],
        ],
      },
    ],
    structs: [thing('a', 'b')],
    handles: [],
    callbacks: [],
    scalars: [],
    constants: [],
  }

  test('keeps versions in the spec, uses the added version for new functions, and fails without one', () => {
    const adding = new History(small, new Set(), 13010)
    expect(adding.dates('cudaOld')).toEqual({ since: 12000, versions: [12000] })
    expect(adding.dates('cudaNew')).toEqual({ since: 13010, versions: [13010] })
    expect(() => new History(small, new Set()).dates('cudaNew')).toThrow(/cudaNew; the spec is of CUDA 13\.0, .*--add/)
  })

  test('reports a guess for a new function, and repeats it silently for a known function', () => {
    const adding = new History(small, new Set(), 13010)
    expect([adding.guess('cudaOld', 'old', 1), adding.guess('cudaNew', 'new', 2), adding.notes]).toEqual([
      1,
      2,
      ['new'],
    ])
    expect(new History(small, new Set()).guess('cudaOld', 'old', 3)).toBe(3)
    expect(() => new History(small, new Set()).guess('cudaNew', 'new', 2)).toThrow(/^new; /)
  })

  test('reports new names, removed names and changed values', () => {
    const after: LibrarySpecFile = {
      ...small,
      functions: [call('cudaOld'), call('cudaNew')],
      enums: [
        {
          name: 'cudaError',
          aliases: [],
          signed: false,
          members: [
            ['cudaSuccess', 0],
            ['cudaMoved', 2],
            ['cudaMore', 3],
          ],
        },
      ],
    }
    expect(describeChanges(small, after)).toEqual([
      'new functions: cudaNew',
      'functions that are gone: cudaGone',
      'new enumerators: cudaError.cudaMore',
      'enumerators that are gone or have another value: cudaError.cudaMoved',
    ])
    expect(describeChanges(small, small)).toEqual([])
  })

  test('reports changed structs with the functions that take them, and changed signatures', () => {
    const breaks = (changes: Partial<LibrarySpecFile>) => describeBreaks(small, { ...small, ...changes })
    expect(breaks({ structs: [thing('a', 'b', 'c')] })).toEqual([
      expect.stringMatching(/^cudaThing grew from 16 to 24 bytes; .*: taken by cudaOld, cudaGone$/),
    ])
    expect(breaks({ structs: [thing('b', 'a')] })).toEqual([expect.stringContaining('has other fields in old places')])
    expect(breaks({ functions: [call('cudaOld', 2)] })).toEqual([
      'cudaOld has another signature under the same symbol: in older versions it would be called wrongly',
    ])
    expect(breaks({})).toEqual([])
  })

  test('refuses a signature that changed with a major version in earlier major versions', () => {
    const headers14: LibrarySpecFile = { ...small, headerVersion: 14000, functions: [call('cudaOld', 2)] }
    const { functions } = new History(small, new Set(), 14000).complete(headers14)
    expect(functions[0]).toMatchObject({ since: 14000, versions: [12000, 14000], otherMajors: [12, 13] })
    expect(describeBreaks(small, { ...headers14, functions })).toEqual([
      expect.stringMatching(/refused in the majors before$/),
    ])
    const [minor] = new History(small, new Set(), 13010).complete({ ...headers14, headerVersion: 13010 }).functions
    expect(minor?.otherMajors).toBeUndefined()
  })

  test('lists and reports exported symbols without a declaration', () => {
    const history = new History(small, new Set(['cudaOld', 'cudaSecret']), 13010)
    expect(history.complete(small).unbound).toEqual([expect.objectContaining({ symbol: 'cudaSecret', exported: true })])
    expect(history.notes).toEqual(['the library exports cudaSecret, which no header declares'])
  })

  test('dates a driver ABI without a function type to the added version', () => {
    const dated = pairVersions(['cuX', 'cuX_v2'], ['PFN_cuX_v2000'], () => 13010)
    expect([...dated]).toEqual([
      ['cuX', 2000],
      ['cuX_v2', 13010],
    ])
  })

  test('reads versions in the numbering of each library, and refuses others', () => {
    expect(readAddition('cuda=13.1')).toEqual({ product: 'cuda', version: 13010 })
    expect(readAddition('nccl=2.31.0')).toEqual({ product: 'nccl', version: 23100 })
    expect(readAddition('nvshmem=3.5.12')).toEqual({ product: 'nvshmem', version: 30512 })
    for (const text of ['cuda', 'cuda=13', 'cuda=13.1.0', 'nccl=2.31', 'cudnn=9.1', 'nccl=two'])
      expect(() => readAddition(text), text).toThrow(`not ${text}`)
  })

  test('requires a folder with the headers', () => {
    expect(bindgen('--add', 'cuda=13.1')).toEqual({ status: 2, output: '--add needs --headers FOLDER\n' })
    const empty = bindgen('--add', 'nccl=2.31.0', '--headers', scratch)
    expect(empty).toEqual({ status: 2, output: `there is no nccl.h in ${scratch}\n` })
  })
})

test('exports of a library next to the headers become the list for comparison with the spec', { timeout: 300_000 }, ({
  skip,
}) => {
  const reason = noClang() ?? noMatchingHeaders('nccl') ?? noCompiler()
  if (reason !== undefined) return skip(reason)
  const { root: place, copy } = copyOfRepository('exports')
  const folder = doctor('exports', headers.nccl as string, doctored.nccl.edits)
  mkdirSync(join(folder, '../lib'))
  const symbols = [...workspace.readSymbols(readSpec('nccl').exports), 'ncclDoctored', 'ncclUntold', 'pncclDoctored']
  const source = symbols.map((symbol) => `void ${symbol}() {}`).join('\n')
  execFileSync('g++', ['-shared', '-x', 'c++', '-', '-o', join(folder, '../lib/libnccl.so.2')], {
    input: `extern "C" {\n${source}\n}`,
  })
  const { output } = bindgen('--add', 'nccl=2.31.0', '--headers', folder, '--root', place)
  const { exports, unbound = [] } = copy.readSpec(copy.libraries[2] as Library)
  expect(exports).toEqual({ title: 'libnccl 2.31.0', file: 'libnccl-2.31.0', version: 23100 })
  expect(copy.readSymbols(exports)).toEqual(new Set(symbols.filter((symbol) => symbol !== 'pncclDoctored')))
  expect(unbound.find(({ symbol }) => symbol === 'ncclUntold')?.exported).toBe(true)
  expect(output).toContain('the library exports ncclUntold, which no header declares')
  expect(output).not.toContain('what NCCL 2.31.0 exports')
})

test('headers older than the spec are refused', { timeout: 300_000 }, ({ skip }) => {
  const reason = noClang() ?? noMatchingHeaders('runtime')
  if (reason !== undefined) return skip(reason)
  const { root: place } = copyOfRepository('earlier')
  const edits: Edits = {
    'cuda.h': [[/(#define CUDA_VERSION) +13000/, '$1 12090']],
    'cuda_runtime_api.h': [[/(#define CUDART_VERSION) +13000/, '$1 12090']],
  }
  const folder = doctor('earlier', headers.cuda as string, edits)
  const { status, output } = bindgen('--add', 'cuda=12.9', '--headers', folder, '--root', place)
  expect([status, output]).toEqual([2, 'driver: the spec is of CUDA 13.0 already, which is later\n'])
})
