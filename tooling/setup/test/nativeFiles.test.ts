import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { publishablePackages } from '../publishable.mjs'
import { readSharedLibrary } from './support/elf.js'

/** The oldest supported C library: that of RHEL 8, which Node's own builds also need. */
const oldest = { major: 2, minor: 28 }

const platformPackages = [...publishablePackages().values()].filter(({ manifest }) => manifest.os !== undefined)
const files = platformPackages.flatMap(({ path }) =>
  readdirSync(path)
    .filter((file) => /\.(node|so(\.\d+)*)$/.test(file))
    .map((file) => join(path, file)),
)

function isTooNew(version: string): boolean {
  const match = /^GLIBC_(\d+)\.(\d+)(?:\.\d+)?$/.exec(version)
  if (match === null) return true // the C++ runtime's, which an old system has in an old version
  const [major, minor] = [Number(match[1]), Number(match[2])]
  return major > oldest.major || (major === oldest.major && minor > oldest.minor)
}

it('the check of native files knows which versions are too new', () => {
  expect(['GLIBC_2.28', 'GLIBC_2.3.4', 'GLIBC_2.2.5'].filter(isTooNew)).toEqual([])
  const newer = [
    'GLIBC_2.29',
    'GLIBC_3.0',
    'GLIBC_ABI_DT_RELR',
    'GLIBC_PRIVATE',
    'GLIBCXX_3.4',
    'CXXABI_1.3',
    'GCC_3.0',
  ]
  expect(newer.filter((version) => !isTooNew(version))).toEqual([])
})

it('the check of native files finds the addon and the libraries of the software device', () => {
  expect(new Set(files.map((file) => basename(file)))).toEqual(
    new Set([
      'shoal_ffi.node',
      'libshoal-sim-cuda.so.1',
      'libshoal-sim-ptx.so.1',
      'libshoal-sim-cudart.so.13',
      'libshoal-sim-nccl.so.2',
      'libshoal-sim-nvshmem_host.so.3',
    ]),
  )
})

describe.each(files)('%s', (file) => {
  const { machine, needed, imports, exports, versions } = readSharedLibrary(file)

  it('is built for the processor in its package name', () => {
    expect(machine).toBe({ x64: 62, arm64: 183 }[basename(dirname(file)).split('-')[1] as 'x64' | 'arm64'])
  })

  it(`needs nothing newer than glibc ${oldest.major}.${oldest.minor}`, () => {
    expect(versions.length).toBeGreaterThan(0)
    expect(versions.filter(isTooNew)).toEqual([])
    const unversioned = imports.filter(({ version, isWeak }) => version === undefined && !isWeak)
    expect(unversioned.filter(({ name }) => !/^(napi_|cu|shoalSim|_ZNK?5shoal)/.test(name))).toEqual([])
  })

  // The PTX engine uses some functions of the driver's library, in the namespace `shoal`.
  it('contains its C++ runtime, without exporting it', () => {
    const system = /^(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux-[\w-]+\.so\.\d|libshoal-sim-cuda\.so\.1)$/
    expect(needed.filter((name) => !system.test(name))).toEqual([])
    expect(exports.length).toBeGreaterThan(0)
    expect(
      exports.filter((name) => !/^(napi_|node_api_|cu|nccl|pnccl|nvshmem|shoalSim|_ZNK?5shoal)/.test(name)),
    ).toEqual([])
  })

  it('is parsed like objdump does', (context) => {
    const { status, stdout } = spawnSync('objdump', ['-T', file], { encoding: 'utf8' })
    if (status !== 0) context.skip('no objdump here')
    const told = stdout.split('\n').flatMap((line) => {
      const match = /\*UND\*\s+\S+\s+(?:\((\S+)\)|(\S+))?\s+(\S+)$/.exec(line)
      return match === null ? [] : [`${match[3]} ${match[1] ?? ''}`]
    })
    expect(imports.map(({ name, version }) => `${name} ${version ?? ''}`).sort()).toEqual(told.sort())
  })
})
