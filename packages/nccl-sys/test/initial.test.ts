import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type NativeMemory, readCString } from '@shoal/ffi'
import {
  initialNcclCommProperties,
  initialNcclConfig,
  initialNcclDevCommRequirements,
  initialNcclSimInfo,
  NCCL_CONFIG_UNDEF_INT,
  NCCL_VERSION_CODE,
  ncclConfig_t,
  ncclConfig_v22803,
  ncclConfigFields,
  ncclDevCommRequirements,
  ncclGinType_t,
  readNcclCommProperties,
} from '@shoal/nccl-sys'
import { VersionTooOldError } from '@shoal/types'
import { describe, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'
import { compileStub, moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

const unset = NCCL_CONFIG_UNDEF_INT
const wrong = (value: unknown) => value as never

describe('ncclConfig_t', () => {
  test.each([
    [21403, 24, 1],
    [21605, 24, 1],
    [21701, 40, 5],
    [21801, 48, 6],
    [22408, 48, 6],
    [22602, 48, 7],
    [22703, 72, 12],
    [22809, 80, 14],
    [22907, 88, 16],
    [23003, 96, 17],
    [23007, 96, 18],
  ])('in %i has %i bytes and %i fields, all unset', (version, size, fields) => {
    const config = initialNcclConfig({}, version)
    const { size: told, magic, version: toldVersion, ...values } = ncclConfig_t.read(config)
    expect([told, magic, toldVersion]).toEqual([BigInt(size), 0xcafebeef, version])
    const names = ncclConfigFields(version)
    expect(names).toHaveLength(fields)
    for (const [name, value] of Object.entries(values)) {
      if ((names as string[]).includes(name)) expect(value, name).toBe(/Name$/.test(name) ? 0n : unset)
    }
    // Bytes after the fields of that version stay zero.
    expect(config.bytes.subarray(size).every((byte) => byte === 0)).toBe(true)
  })

  test('has values at the offsets of the version, and text as C strings', () => {
    const config = initialNcclConfig(
      { blocking: 0, netName: 'Socket', commName: 'träge', nvlinkCentricSched: 1 },
      22809,
    )
    const read = ncclConfig_v22803.read(config)
    expect(read).toMatchObject({ size: 80n, blocking: 0, cgaClusterSize: unset, nvlinkCentricSched: 1 })
    expect(readCString(read.netName)).toBe('Socket')
    expect(readCString(read.commName)).toBe('träge')
    expect(ncclConfig_v22803.read(initialNcclConfig({ netName: null, commName: 7n }, 22809))).toMatchObject({
      netName: 0n,
      commName: 7n,
    })
  })

  test('for a library newer than the bindings is the newest known config', () => {
    expect(ncclConfig_t.read(initialNcclConfig({ graphStreamOrdering: 0 }, 99999))).toMatchObject({
      size: 96n,
      version: NCCL_VERSION_CODE,
      graphStreamOrdering: 0,
    })
  })

  test.each([
    ['numRmaCtx', 22809, '2.29.2', '2.28.9'],
    ['graphStreamOrdering', 23003, '2.30.5', '2.30.3'],
    ['splitShare', 21701, '2.18.1', '2.17.1'],
    ['cgaClusterSize', 21605, '2.17.1', '2.16.5'],
  ])('with %s is refused by %i, with both versions', (field, version, since, installed) => {
    const make = () => initialNcclConfig({ [field]: 1 }, version)
    expect(make).toThrow(VersionTooOldError)
    expect(make).toThrow(expect.objectContaining({ api: `ncclConfig_t.${field}`, since, installed }))
    expect(() => initialNcclConfig({ [field]: undefined }, version)).not.toThrow()
  })

  test('does not exist before 2.14.3', () => {
    expect(() => initialNcclConfig({}, 21304)).toThrow(
      expect.objectContaining({
        name: 'VersionTooOldError',
        api: 'ncclConfig_t',
        since: '2.14.3',
        installed: '2.13.4',
      }),
    )
  })

  test.each([
    ['a field that no version has', { blockingg: 1 }, /ncclConfig_t has no field 'blockingg'/],
    ['a field of the bindings', { magic: 1 }, /ncclConfig_t.magic is set by the version/],
    ['the size', { size: 8n }, /ncclConfig_t.size is set by the version/],
    ['a fraction', { minCTAs: 0.5 }, /minCTAs/],
    ['a number beyond 32 bits', { minCTAs: 2 ** 31 }, /minCTAs/],
    ['a text for a number', { minCTAs: '4' }, /minCTAs/],
    ['a number for a text', { netName: 4 }, /ncclConfig_t.netName must be a text, an address \(bigint\) or null/],
    ['a text that C would cut off', { netName: 'a\0b' }, /netName: the text has a zero byte/],
    ['no object', null, /ncclConfig_t: expected an object/],
  ])('refuses %s', (_what, values, message) => {
    expect(() => initialNcclConfig(wrong(values), 23007)).toThrow(message)
  })

  test.each([1.5, -1, '2.30', Number.NaN])('refuses %s as a version', (version) => {
    expect(() => initialNcclConfig({}, wrong(version))).toThrow(/an NCCL version is a number such as 23007/)
  })
})

test('ncclCommProperties has the GIN type as one byte in its first version', () => {
  const first = initialNcclCommProperties(22902)
  expect(first.u64[0]).toBe(40n)
  first.bytes[34] = ncclGinType_t.NCCL_GIN_TYPE_GDAKI
  const { nLsaTeams, ginType, version } = readNcclCommProperties(first, 22903)
  expect([nLsaTeams, ginType, version]).toEqual([undefined, ncclGinType_t.NCCL_GIN_TYPE_GDAKI, 22902])
  const now = initialNcclCommProperties(22907)
  expect(now.u64[0]).toBe(56n)
  expect(Object.keys(readNcclCommProperties(now, 22907))).toContain('railedGinType')
})

test('ncclDevCommRequirements has no size and version in 2.28', () => {
  expect(initialNcclDevCommRequirements({ lsaBarrierCount: 3 }, 22803).i32[5]).toBe(3)
  const requirements = initialNcclDevCommRequirements({ lsaBarrierCount: 3, ginSignalCount: 4 }, 22809)
  expect([...requirements.bytes.subarray(0, 56)].filter((byte) => byte !== 0)).toEqual([3, 4])
  expect(requirements.i32[6]).toBe(3)
  expect(() => initialNcclDevCommRequirements({ ginSignalCount: 4 }, 22803)).toThrow(
    expect.objectContaining({ api: 'ncclDevCommRequirements.ginSignalCount', since: '2.28.7', installed: '2.28.3' }),
  )
  expect(() => initialNcclDevCommRequirements(wrong({ magic: 1 }), 22809)).toThrow(/magic/)
  expect(() => initialNcclDevCommRequirements(wrong({ teamRequirementsList: 'x' }), 22809)).toThrow(
    'ncclDevCommRequirements.teamRequirementsList must be an address (bigint) or null, got string',
  )
  expect(ncclDevCommRequirements.read(initialNcclDevCommRequirements({}, 22902))).toMatchObject({
    size: 72n,
    version: 22902,
    ginContextCount: 4,
  })
})

describe('initial structures equal those of the C header, compiled by g++', () => {
  const folders = [process.env['NCCL_INCLUDE'], `${process.env['NCCL_HOME'] ?? ''}/include`]
  const nccl = folders.find((folder) => folder && existsSync(join(folder, 'nccl.h'))) as string
  const cuda = [process.env['CUDA_HOME'], process.env['CUDA_PATH'], '/usr/local/cuda'].find(
    (home) => home && existsSync(join(home, 'include/cuda_runtime.h')),
  )
  const found = nccl ? Number(/NCCL_VERSION_CODE (\d+)/.exec(readFileSync(join(nccl, 'nccl.h'), 'utf8'))?.[1]) : 0

  const scratch = scratchFolder()

  const structs: [string, string, number, (version: number) => NativeMemory][] = [
    ['ncclConfig_t', 'NCCL_CONFIG_INITIALIZER', 21403, (version) => initialNcclConfig({}, version)],
    ['ncclSimInfo_t', 'NCCL_SIM_INFO_INITIALIZER', 22203, initialNcclSimInfo],
    ['ncclCommProperties_t', 'NCCL_COMM_PROPERTIES_INITIALIZER', 22902, initialNcclCommProperties],
    [
      'ncclDevCommRequirements_t',
      'NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER',
      22902,
      (version) => initialNcclDevCommRequirements({}, version),
    ],
  ]

  test.for(structs)('%s', ([type, initializer, since, make], { skip }) => {
    if (nccl === undefined || cuda === undefined) return skip('no headers: set NCCL_INCLUDE and CUDA_HOME')
    if (found < since || found > NCCL_VERSION_CODE) return skip(`the header is of NCCL ${found}`)
    const device = existsSync(join(nccl, 'nccl_device/core.h')) ? '#include <nccl_device/core.h>' : ''
    writeFileSync(
      join(scratch, 'program.cpp'),
      `#include <nccl.h>\n${device}\n#include <cstdio>\n#include <cstring>
int main() {
  static const ${type} initial = ${initializer};
  unsigned char memory[sizeof initial];
  std::memcpy(memory, &initial, sizeof initial);
  for (unsigned char byte : memory) std::printf("%02x", byte);
}`,
    )
    const program = join(scratch, 'program')
    const flags = ['-std=c++17', '-w', `-I${nccl}`, `-I${cuda}/include`]
    execFileSync('g++', [...flags, '-o', program, join(scratch, 'program.cpp')], { stdio: 'pipe' })
    const bytes = execFileSync(program, { encoding: 'utf8' })
    expect(bytes.length).toBeGreaterThanOrEqual(48)
    expect(Buffer.from(make(found).bytes.subarray(0, bytes.length / 2)).toString('hex')).toBe(bytes)
  })
})

describe('initial structures default to the version of the installed library', () => {
  const library = (version: number) =>
    compileStub(
      `nccl-${version}`,
      `int ncclGetVersion(int* version) { *version = ${version}; return 0; }
       typedef struct { char internal[128]; } Id;
       int ncclCommInitRankConfig(void** comm, int nranks, Id id, int rank, const unsigned* config) {
         dprintf(1, "size %zu magic %x version %u blocking %d\\n", *(const size_t*)config, config[2], config[3], (int)config[4]);
         return 0;
       }`,
    )
  const source = `import * as n from '@shoal/nccl-sys'
    const config = n.initialNcclConfig({ blocking: 1 })
    n.ncclCommInitRankConfig(new BigUint64Array(1), 1, new Uint8Array(128), 0, config)
    try { n.initialNcclConfig({ numRmaCtx: 1 }); console.log('taken') } catch (error) { console.log(error.name, error.installed) }`

  test.each([
    [22809, ['size 80 magic cafebeef version 22809 blocking 1', 'VersionTooOldError 2.28.9']],
    [23007, ['size 96 magic cafebeef version 23007 blocking 1', 'taken']],
  ])('%i', (version, lines) => {
    expect(runModule(source, { SHOAL_NCCL_LIBRARY: library(version) })).toEqual(lines)
  })
})
