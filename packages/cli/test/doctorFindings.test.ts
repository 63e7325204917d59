import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cublas, cublasLt } from '@shoal/cublas-sys'
import { driver, runtime } from '@shoal/cuda-sys'
import { type LibraryReport, probe, probeAddon } from '@shoal/ffi'
import { nccl } from '@shoal/nccl-sys'
import { nvjitlink } from '@shoal/nvjitlink-sys'
import { nvml } from '@shoal/nvml-sys'
import { nvrtc } from '@shoal/nvrtc-sys'
import { nvshmem } from '@shoal/nvshmem-sys'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { doctorCommand } from '../src/doctor/command.js'
import { examineDevices } from '../src/doctor/devices.js'
import { examine } from '../src/doctor/examine.js'
import type { LibraryName } from '../src/doctor/libraries.gen.js'
import type { DeviceReport, Finding, SystemReport } from '../src/doctor/report.js'
import { examineSystem } from '../src/doctor/system.js'

// Each test sets the probes' results; this file tests the findings from them.
vi.mock('@shoal/ffi', async (original) => ({ ...(await original<object>()), probe: vi.fn(), probeAddon: vi.fn() }))
vi.mock('../src/doctor/system.js', () => ({ examineSystem: vi.fn() }))
vi.mock('../src/doctor/devices.js', () => ({ examineDevices: vi.fn() }))

const folder = mkdtempSync(join(tmpdir(), 'shoal-findings-'))
afterAll(() => rmSync(folder, { recursive: true }))

const names: readonly LibraryName[] = [
  'driver',
  'runtime',
  'nccl',
  'nvshmem',
  'nvrtc',
  'nvjitlink',
  'cublas',
  'cublasLt',
  'nvml',
]
type Libraries = Partial<Record<LibraryName, Partial<LibraryReport>>>
const gpu = { ordinal: 0, isSoftware: false } as DeviceReport
const problem: Finding = { level: 'error', subject: 'devices', message: 'it is broken', remedies: [] }

/** Everything of the software device is found, except for the given changes. */
function found(
  libraries: Libraries = {},
  system: Partial<SystemReport> = { sharedMemoryBytes: 2 ** 30 },
  devices: readonly DeviceReport[] = [gpu],
  findings: readonly Finding[] = [],
): void {
  const all = names.map((name) => {
    const report = {
      id: name,
      title: `lib ${name}`,
      found: true,
      path: `/lib/${name}.so`,
      step: 'sim',
      version: '12.4',
    }
    return { ...report, attempts: [], ...libraries[name] }
  })
  vi.mocked(probe).mockReturnValue(all)
  vi.mocked(probeAddon).mockReturnValue({ loaded: true, engine: 'addon' })
  // The findings are added to those of the system.
  vi.mocked(examineSystem).mockImplementation(() => ({ system: system as SystemReport, findings: [] }))
  vi.mocked(examineDevices).mockReturnValue({ devices, links: [], findings })
}
beforeEach(() => found())
afterEach(() => void vi.restoreAllMocks())

const attempt = (step: string, candidate: string, outcome: string) => ({ step, candidate, outcome }) as never

test('a complete installation has no findings', () => {
  const report = examine([])
  expect(probe).toHaveBeenLastCalledWith([driver, runtime, nccl, nvshmem, nvrtc, nvjitlink, cublas, cublasLt, nvml])
  expect(report).toEqual({
    system: { sharedMemoryBytes: 2 ** 30 },
    addon: { loaded: true, engine: 'addon' },
    libraries: vi.mocked(probe).mock.results.at(-1)?.value,
    ...{ nvshmemPlugins: [], devices: [gpu], links: [], findings: [] },
  })
})

test('no library is searched without the addon', () => {
  vi.mocked(probe).mockClear()
  vi.mocked(examineDevices).mockClear()
  for (const [error, message] of [
    ['no such file', 'no such file'],
    [undefined, 'it does not load'],
  ] as const) {
    vi.mocked(probeAddon).mockReturnValue({ loaded: false, ...(error && { error }) })
    const { findings, libraries, devices } = examine([])
    expect(findings).toEqual([{ level: 'error', subject: 'addon', message, remedies: [] }])
    expect([libraries, devices]).toEqual([[], []])
  }
  expect([vi.mocked(probe).mock.calls, vi.mocked(examineDevices).mock.calls]).toEqual([[], []])
})

describe('findings about libraries', () => {
  const error = 'It is not here.\nTried:\n  a: no\nWays out:\n  - install it\n  - name it\n-'
  const files = ['CUDA', 'CUDART', ...names.slice(2).map((name) => name.toUpperCase())]
  const variables = files.map((name) => `SHOAL_${name}_LIBRARY`)
  const levels = ['error', 'warning', 'warning', 'warning', 'note', 'note', 'note', 'note', 'note']

  test.each(names.map((name, index) => [name, levels[index]!, variables[index]!] as const))(
    '%s missing has level %s, or is an error if required',
    (name, level, variable) => {
      const path = undefined
      found({ [name]: { found: false, path, error, attempts: [attempt('name', 'x.so', 'no')] } })
      const subject = `lib ${name}`
      const message = level === 'error' ? 'not found' : 'not found; packages that need it cannot run'
      expect(examine([]).findings).toEqual([{ level, subject, message, remedies: ['install it', 'name it'] }])
      const required = { level: 'error', subject, message: 'not found', remedies: ['install it', 'name it'] }
      expect(examine(['nccl', name]).findings).toEqual([required])

      // A variable is searched first, and the file that it names is wrong.
      found({
        [name]: { found: false, attempts: [attempt('environment', '/x.so', ' bad file\n'), attempt('name', 'y', '')] },
      })
      const remedies = [`unset ${variable}, so that the library is searched for, or name the right file in it`]
      const because = { ...required, message: '/x.so does not load: bad file', remedies }
      expect(examine([name]).findings).toEqual([because])
      found({ [name]: { found: false, attempts: [attempt('option', '/x.so', 'bad file')] } })
      expect(examine([name]).findings).toEqual([{ ...because, remedies: [] }])
    },
  )

  test.each(names.map((name, index) => [name, levels[index]!] as const))(
    '%s without a readable version is reported',
    (name, level) => {
      const version = undefined
      found({ [name]: { version, error: 'it does not say' } })
      const message = 'reading its version failed: it does not say'
      const finding = { level, subject: `lib ${name}`, message, remedies: [] }
      expect(examine([]).findings).toEqual([finding])
      expect(examine([name]).findings).toEqual([{ ...finding, level: 'error' }])
    },
  )

  test.each([
    ['11.8', '12.0', true],
    ['12.0', '12.9', false],
    ['12.9', '12.0', false],
    ['13.0', '12.9', false],
    [undefined, '12.9', false],
    ['11.8', undefined, false],
    ['old', '12.9', false],
    ['11.8', 'new', false],
  ])('driver for CUDA %s, runtime of CUDA %s: too old is %s', (driverVersion, runtimeVersion, isOld) => {
    found({ driver: { version: driverVersion! }, runtime: { version: runtimeVersion! } })
    const message = `it is for CUDA ${runtimeVersion}, but the driver supports at most CUDA ${driverVersion}`
    const remedies = ['install a newer driver, or a runtime of CUDA 11 and name it in SHOAL_CUDART_LIBRARY']
    expect(examine([]).findings).toEqual(isOld ? [{ level: 'error', subject: 'lib runtime', message, remedies }] : [])
  })

  test('a missing library is not compared by version', () => {
    found({ driver: { version: '11.8' }, runtime: { found: false, version: '12.0' } })
    expect(examine([]).findings.map(({ level }) => level)).toEqual(['warning'])
  })
})

describe('findings about devices', () => {
  test('need a driver', () => {
    vi.mocked(examineDevices).mockClear()
    found({ driver: { found: false } }, undefined, [gpu], [problem])
    const { devices, findings } = examine([])
    expect([devices, findings.map(({ subject }) => subject)]).toEqual([[], ['lib driver']])
    expect(examineDevices).not.toHaveBeenCalled()
  })

  test('have an error for devices that do not answer', () => {
    found({}, undefined, [], [problem])
    expect(examine([]).findings).toEqual([problem])
  })

  test('mention software devices once', () => {
    const software = { ...gpu, isSoftware: true }
    found({}, undefined, [gpu, software, software])
    expect(examine([]).findings).toEqual([
      {
        ...{ level: 'note', subject: 'devices', remedies: ['unset SHOAL_DEVICE to use GPUs'] },
        message: 'these are software devices: this CPU does the work, so timings say nothing about a GPU',
      },
    ])
  })

  test('precede optional components, sorted by severity', () => {
    found({ nccl: { found: false }, nvrtc: { found: false } }, undefined, [{ ...gpu, isSoftware: true }], [problem])
    expect(examine([]).findings.map(({ level, subject }) => `${level} ${subject}`)).toEqual([
      ...['error devices', 'warning lib nccl', 'note lib nvrtc', 'note devices'],
    ])
  })
})

describe('findings about shared memory', () => {
  test.each([
    [2 ** 30, 2, undefined],
    [2 ** 30 - 1, 1, undefined],
    [2 ** 30 - 1, 2, 'has 1024 MiB'],
    [2 ** 26, 8, 'has 64 MiB'],
    [undefined, 2, 'does not exist'],
    [undefined, 1, undefined],
  ])('%s bytes for %d devices', (sharedMemoryBytes, count, words) => {
    const system = sharedMemoryBytes === undefined ? {} : { sharedMemoryBytes }
    found({}, system, Array(count).fill(gpu))
    const message = `/dev/shm ${words}; ranks that exchange data through it may not start`
    const remedies = ['start a container with --shm-size=1g or more, or with --ipc=host']
    const finding = { level: 'warning', subject: 'shared memory', message, remedies }
    expect(examine([]).findings).toEqual(words === undefined ? [] : [finding])
  })

  test('exist on Linux only', () => {
    vi.spyOn(process, 'platform', 'get').mockReturnValue('darwin')
    found({}, { sharedMemoryBytes: 0 }, [gpu, gpu])
    expect(examine([]).findings).toEqual([])
  })
})

describe('findings about plugins of NVSHMEM', () => {
  const warned = (message: string, remedy: string) => [
    { level: 'warning', subject: 'lib nvshmem', message, remedies: [remedy] },
  ]

  test.each([
    [
      ['nvshmem_transport_ibrc.so.3', 'nvshmem_bootstrap_uid.so', 'nvshmem_bootstrap_uid.txt', 'libnvshmem_host.so.3'],
      ['nvshmem_bootstrap_uid.so', 'nvshmem_transport_ibrc.so.3'],
      true,
    ],
    [['nvshmem_bootstrap_pmi.so', 'my_nvshmem_bootstrap_uid.so'], ['nvshmem_bootstrap_pmi.so'], false],
    [[], [], false],
  ])('list plugins next to the library: %j', (files, plugins, isComplete) => {
    const place = mkdtempSync(join(folder, 'nvshmem-'))
    for (const file of files) writeFileSync(join(place, file), '')
    found({ nvshmem: { step: 'name', path: join(place, 'libnvshmem_host.so.3') } })
    const { nvshmemPlugins, findings } = examine([])
    const message = 'its plugin nvshmem_bootstrap_uid is not next to it, so it cannot start with a unique id'
    expect(nvshmemPlugins).toEqual(plugins)
    expect(findings).toEqual(isComplete ? [] : warned(message, 'install the complete package or wheel'))
    // The software device does not need it.
    found({ nvshmem: { step: 'sim', path: join(place, 'libnvshmem_host.so.3') } })
    expect(examine([])).toMatchObject({ nvshmemPlugins: [], findings: [] })
  })

  test('cover a folder that cannot be listed', () => {
    found({ nvshmem: { step: 'name', path: join(folder, 'nowhere/x.so') } })
    const { findings } = examine([])
    const message = expect.stringMatching(/^the folder of its plugins cannot be read: ENOENT/)
    expect(findings).toEqual(warned(message, 'let this user read the folder'))
  })

  test('are skipped for a missing library or an unknown path', () => {
    mkdirSync(join(folder, 'empty'))
    found({ nvshmem: { found: false, step: 'name', path: join(folder, 'empty/x.so') } })
    expect(examine([]).findings.map(({ message }) => message)).toEqual(['not found; packages that need it cannot run'])
    found({ nvshmem: { step: 'name', path: undefined! } })
    expect(examine([]).findings).toEqual([])
  })
})

describe('the doctor command', () => {
  async function doctor(...words: string[]) {
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)
    const status = await doctorCommand.run(words)
    return { status, output: log.mock.calls.flat().join('\n') }
  }
  beforeEach(() => {
    const system = { shoal: '1', node: 'v20', platform: 'linux', cpus: 1, environment: {}, launchers: {} }
    found({}, { ...system, sharedMemoryBytes: 2 ** 30 }, [])
  })

  test.each([
    [['--json'], /^\{\n {2}"ok": true,\n {2}"system": \{/],
    [[], /^System\n {2}Shoal 1, Node v20/],
    [['--verbose'], /^System\n {2}Shoal 1, Node v20/],
    [['--markdown'], /^<details>\n/],
  ])('%j', async (words, output) => {
    expect(await doctor(...words)).toEqual({ status: 0, output: expect.stringMatching(output) })
  })

  test('fails only on errors, which a missing --require library causes', async () => {
    found({ nccl: { found: false }, nvrtc: { found: false } }, undefined, [])
    expect((await doctor('--json')).status).toBe(0)
    for (const list of ['nccl', 'runtime, nvrtc', ',nccl,'])
      expect((await doctor('--json', '--require', list)).status).toBe(1)
    for (const list of ['', ',', 'runtime', ...names.filter((name) => !/nccl|nvrtc/.test(name))])
      expect((await doctor('--json', '--require', list)).status).toBe(0)
  })

  test.each([
    [['--json', '--verbose'], '--json already has everything: omit --verbose and --markdown'],
    [['--json', '--markdown'], '--json already has everything: omit --verbose and --markdown'],
    [['--verbose', '--markdown'], '--markdown is brief: omit --verbose'],
    [['--require', 'nccl,toString'], "--require: there is no library 'toString', only driver, runtime, nccl, nvshmem"],
    [['extra'], "Unexpected argument 'extra'"],
  ])('doctor refuses %j', async (words, message) => {
    await expect(doctor(...words)).rejects.toThrow(message)
    await expect(doctor(...words)).rejects.toMatchObject({ name: 'UsageError' })
  })
})
