import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { libraries as known } from '../../../tooling/libraries/index.mjs'
import { examineMachine, numaNodeOf } from '../src/doctor/machine.js'
import { printable } from '../src/doctor/print.js'
import type { DoctorReport } from '../src/doctor/report.js'

const shoal = fileURLToPath(new URL('../bin/shoal.js', import.meta.url))
const nowhere = '/nowhere/no-such-library.so'

function doctor(options: readonly string[], environment: NodeJS.ProcessEnv) {
  const named = { SHOAL_CUDA_LIBRARY: '', SHOAL_CUDART_LIBRARY: '', SHOAL_NCCL_LIBRARY: '', SHOAL_NVSHMEM_LIBRARY: '' }
  const { stdout, stderr, status } = spawnSync(process.execPath, [shoal, 'doctor', ...options], {
    env: { ...process.env, SHOAL_DEVICE: '', ...named, ...environment },
    encoding: 'utf8',
  })
  return { output: stdout, errors: stderr, code: status }
}

function report(
  options: readonly string[],
  environment: NodeJS.ProcessEnv,
): DoctorReport & { ok: boolean; code: number | null } {
  const { output, code } = doctor(['--json', ...options], environment)
  return { ...(JSON.parse(output) as DoctorReport & { ok: boolean }), code }
}

/** No library is found, on any machine. */
const nothing = {
  SHOAL_CUDA_LIBRARY: nowhere,
  SHOAL_CUDART_LIBRARY: nowhere,
  SHOAL_NCCL_LIBRARY: nowhere,
  SHOAL_NVSHMEM_LIBRARY: nowhere,
  SHOAL_NVRTC_LIBRARY: nowhere,
  SHOAL_NVJITLINK_LIBRARY: nowhere,
  SHOAL_CUBLAS_LIBRARY: nowhere,
  SHOAL_CUBLASLT_LIBRARY: nowhere,
  SHOAL_NVML_LIBRARY: nowhere,
}

test('doctor with the software device lists libraries, devices and links', () => {
  const { code, ok, libraries, devices, links, addon, system, findings } = report([], {
    SHOAL_DEVICE: 'sim',
    SHOAL_SIM_DEVICES: '3',
  })
  expect(code).toBe(0)
  expect(ok).toBe(true)
  expect(addon).toEqual({ loaded: true, engine: 'addon' })
  expect(libraries.map(({ id }) => id)).toEqual(known.map(({ places }) => places.id))
  for (const library of libraries.slice(0, 3)) {
    expect(library).toMatchObject({ found: true, step: 'sim' })
    expect(existsSync(library.path!)).toBe(true)
    expect(library.version).toMatch(/^\d+\.\d+/)
  }
  expect(devices.map(({ ordinal, isSoftware }) => [ordinal, isSoftware])).toEqual([0, 1, 2].map((i) => [i, true]))
  expect(devices[0]).toMatchObject({ computeCapability: '9.0', hasMulticast: true })
  expect(devices[0]!.uuid).toMatch(/^GPU-/)
  expect(links.map(({ from, to }) => `${from}${to}`)).toEqual(['01', '02', '10', '12', '20', '21'])
  expect(links.every((link) => link.hasAccess)).toBe(true)
  expect(system.node).toBe(process.version)
  expect(findings.map(({ level }) => level)).toContain('note')
})

test('doctor without any library reports the missing driver with a remedy', () => {
  const { code, ok, libraries, devices, findings } = report([], nothing)
  expect(code).toBe(1)
  expect(ok).toBe(false)
  expect(devices).toEqual([])
  expect(libraries.map(({ found }) => found)).toEqual(known.map(() => false))
  const errors = findings.filter(({ level }) => level === 'error')
  expect(errors).toHaveLength(1)
  expect(errors[0]!.message).toContain(`${nowhere} does not load: `)
  expect(errors[0]!.remedies.join(' ')).toMatch(/install the NVIDIA driver.*SHOAL_CUDA_LIBRARY=.*SHOAL_DEVICE=sim/)
  expect(findings.filter(({ level }) => level === 'warning')).toHaveLength(3)
  // A missing library that only some programs need is not a fault of the machine.
  const notes = findings.filter(({ level }) => level === 'note').map(({ subject }) => subject)
  expect(notes).toEqual(
    expect.arrayContaining(['NVIDIA NVRTC', 'NVIDIA nvJitLink', 'NVIDIA cuBLAS', 'NVIDIA cuBLASLt', 'NVIDIA NVML']),
  )
})

test('doctor suggests to correct a variable that names a wrong file', () => {
  const remedies = (environment: NodeJS.ProcessEnv, title: string): string =>
    report([], environment)
      .findings.find(({ subject }) => subject === title)!
      .remedies.join('; ')
  expect(remedies(nothing, 'NVIDIA NCCL')).toMatch(/^unset SHOAL_NCCL_LIBRARY, so that the library is searched for/)
  expect(remedies(nothing, 'NVIDIA CUDA driver')).toMatch(/^unset SHOAL_CUDA_LIBRARY, /)
})

test('doctor reports a missing --require library as an error', () => {
  const sim = { SHOAL_DEVICE: 'sim', SHOAL_NCCL_LIBRARY: nowhere }
  expect(report([], sim)).toMatchObject({ code: 0, ok: true })
  const { code, findings } = report(['--require', 'runtime,nccl'], sim)
  expect(code).toBe(1)
  expect(findings.filter(({ level }) => level === 'error').map(({ subject }) => subject)).toEqual(['NVIDIA NCCL'])
})

test('doctor reports a driver without a device', () => {
  const { code, findings } = report([], { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '0' })
  expect(code).toBe(1)
  expect(findings[0]).toMatchObject({ level: 'error', subject: 'devices' })
  expect(findings[0]!.remedies[0]).toContain('nvidia-smi')
})

test('doctor reports an addon that does not load', () => {
  const { output, code } = doctor([], { SHOAL_FFI_ADDON: nowhere })
  expect(code).toBe(1)
  expect(output).toContain('DOES NOT LOAD')
  expect(output).toMatch(/error: addon: SHOAL_ADDON_NOT_LOADED/)
})

test('doctor prints environment variables without secrets', () => {
  const secret = 'nobody may see this'
  const { output } = doctor(['--json'], { ...nothing, SHOAL_SECRET: secret, NCCL_DEBUG: 'WARN', NCCL_API_KEY: secret })
  expect(output).not.toContain(secret)
  expect((JSON.parse(output) as DoctorReport).system.environment).toMatchObject({ NCCL_DEBUG: 'WARN' })
})

test('doctor omits environment variables that users cannot change', () => {
  const { system } = report([], {
    ...nothing,
    NVIDIA_REQUIRE_CUDA: 'cuda>=12.8 brand=unknown,driver>=470,driver<471 '.repeat(20),
    NVIDIA_VISIBLE_DEVICES: 'all',
    LD_LIBRARY_PATH: '/opt/somewhere',
  })
  expect(system.environment).toMatchObject({ NVIDIA_VISIBLE_DEVICES: 'all', LD_LIBRARY_PATH: '/opt/somewhere' })
  expect(system.environment).not.toHaveProperty('NVIDIA_REQUIRE_CUDA')
})

test('doctor describes the machine: distribution, NUMA nodes, networks, driver packages', () => {
  const root = mkdtempSync(join(tmpdir(), 'shoal-machine-'))
  const write = (path: string, text: string): void => {
    mkdirSync(join(root, path, '..'), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  try {
    write('etc/os-release', 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.2 LTS"\n')
    write('sys/devices/system/node/node0/cpulist', '0-31\n')
    write('sys/devices/system/node/node1/cpulist', '32-63\n')
    write('sys/class/infiniband/mlx5_0/ports/1/state', '4: ACTIVE\n')
    write('sys/class/infiniband/mlx5_0/ports/1/rate', '400 Gb/sec (4X NDR)\n')
    write('sys/class/infiniband/mlx5_0/ports/1/link_layer', 'InfiniBand\n')
    write('sys/class/infiniband/mlx5_0/device/numa_node', '1\n')
    write('sys/bus/pci/devices/0000:9b:00.0/numa_node', '1\n')
    write('sys/bus/pci/devices/0000:03:00.0/numa_node', '-1\n')
    const entry = (name: string, status: string): string =>
      `Package: ${name}\nStatus: install ok ${status}\nVersion: 580.1-0\n`
    const packages = [
      entry('nvidia-driver-580', 'installed'),
      entry('bash', 'installed'),
      entry('cuda-drivers-570', 'config-files'),
    ]
    write('var/lib/dpkg/status', packages.join('\n'))
    const machine = examineMachine(root)
    expect(machine).toMatchObject({
      distribution: 'Ubuntu 24.04.2 LTS',
      numaNodes: [
        { node: 0, cpus: '0-31' },
        { node: 1, cpus: '32-63' },
      ],
      driverPackages: { 'nvidia-driver-580': '580.1-0' },
    })
    expect(machine.driverPackages).not.toHaveProperty('cuda-drivers-570')
    const link = 'InfiniBand, ACTIVE, 400 Gb/sec (4X NDR)'
    expect(machine.networks[0]).toEqual({ name: 'mlx5_0', kind: 'rdma', link, numaNode: 1 })
    expect(numaNodeOf('00000000:9B:00.0', root)).toEqual({ numaNode: 1 })
    expect([numaNodeOf('0000:03:00.0', root), numaNodeOf('0000:04:00.0', root)]).toEqual([{}, {}])
    const system = {
      shoal: '1.2.3',
      node: 'v20',
      platform: 'linux-x64',
      cpus: 64,
      machine,
      environment: {},
      launchers: {},
    }
    const base = {
      system,
      addon: { loaded: true },
      libraries: [],
      nvshmemPlugins: [],
      devices: [],
      links: [],
      findings: [],
    }
    const lines = printable(base, false)
    expect(lines).toContain('NUMA: node 0 CPUs 0-31; node 1 CPUs 32-63')
    expect(lines).toContain(`network mlx5_0, RDMA, ${link}, NUMA node 1`)
    expect(lines).toContain('driver packages: nvidia-driver-580 580.1-0')
    expect(examineMachine(join(root, 'nothing'))).toMatchObject({ numaNodes: [], driverPackages: {} })
  } finally {
    rmSync(root, { recursive: true })
  }
})

test("doctor --markdown is folded for issues, and omits the user's folder", () => {
  const { output, code } = doctor(['--markdown'], {
    ...nothing,
    HOME: '/home/somebody',
    SHOAL_NOTE: '/home/somebody/notes',
  })
  expect(code).toBe(1)
  expect(output).toMatch(/^<details>\n<summary>shoal doctor: errors 1, warnings 3<\/summary>\n\n```text\nSystem\n/)
  expect(output).toMatch(/```\n\n<\/details>\n$/)
  expect(output).toContain('SHOAL_NOTE=~/notes')
  expect(output).not.toContain('somebody')
})

test('doctor lists the launchers that can be started', () => {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-doctor-'))
  try {
    const [first, second] = ['first', 'second'].map((name) => join(folder, name)) as [string, string]
    mkdirSync(join(first, 'mpirun'), { recursive: true })
    mkdirSync(second)
    writeFileSync(join(first, 'srun'), '', { mode: 0o644 })
    for (const name of ['mpirun', 'srun']) writeFileSync(join(second, name), '', { mode: 0o755 })
    const { system } = report([], { ...nothing, PATH: [first, '/nowhere', join(second, 'srun'), second].join(':') })
    expect(system.launchers).toEqual({ mpirun: join(second, 'mpirun'), srun: join(second, 'srun') })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('doctor prints text, with every searched place on request', () => {
  const environment = { ...nothing, SHOAL_CUDA_LIBRARY: '', SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' }
  const brief = doctor([], environment)
  expect(brief.output).toMatch(/^System\n {2}Shoal \d+\.\d+\.\d+\S*, Node v/)
  expect(brief.output).toMatch(/NVIDIA CUDA driver \d+\.\d+: \/.*libshoal-sim-cuda\.so\.1 \(sim\)/)
  expect(brief.output).toContain('0  Shoal Software Device (SOFTWARE: this CPU, no GPU): compute capability 9.0')
  expect(brief.output).toContain('warning: NVIDIA NCCL')
  expect(brief.output).not.toContain('environment  ')
  const verbose = doctor(['--verbose'], environment)
  expect(verbose.output).toContain(`environment  ${nowhere}: `)
  expect(brief.code).toBe(0)
})

test('doctor accepts --help at any position', () => {
  for (const options of [['--help'], ['--json', '-h']]) {
    expect(doctor(options, nothing)).toMatchObject({ code: 0, output: expect.stringContaining('usage: shoal doctor') })
  }
})

test('doctor prints a table of links', () => {
  const device = { name: 'X', uuid: 'u', pciBusId: 'b', computeCapability: '9.0', totalBytes: 2 ** 30 }
  const devices = [0, 1, 2].map((ordinal) => ({
    ...device,
    ordinal,
    isSoftware: false,
    multiprocessors: 132,
    hasMulticast: false,
  }))
  const link = (from: number, to: number, hasAccess: boolean, hasNativeAtomics: boolean) => ({
    from,
    to,
    hasAccess,
    hasNativeAtomics,
    performanceRank: 0,
  })
  const links = [
    ...[link(0, 1, true, true), link(1, 0, true, true)],
    ...[link(0, 2, true, false), link(2, 0, true, false)],
    ...[link(1, 2, false, false), link(2, 1, false, false)],
  ]
  const system = { shoal: '1.2.3', node: 'v20', platform: 'linux-x64', cpus: 8, environment: {}, launchers: {} }
  const base = { system, addon: { loaded: true }, libraries: [], nvshmemPlugins: [], devices, links, findings: [] }
  const text = printable(base, false)
  expect(text).toContain(
    ['       0   1   2', '  0    -   NV  P2P', '  1    NV  -   SYS', '  2    P2P SYS -'].join('\n'),
  )
  expect(text).toMatch(/Findings\n {2}nothing is missing$/)
})

test.each([
  [['--require', 'cudnn'], "there is no library 'cudnn'"],
  [['--loud'], '--loud'],
  [['extra'], 'extra'],
  [['--json', '--markdown'], '--json already has everything'],
  [['--markdown', '--verbose'], '--markdown is brief'],
])('doctor refuses wrong options: %j', (options, words) => {
  const { code, errors } = doctor(options, nothing)
  expect(code).toBe(2)
  expect(errors).toContain(words)
  expect(errors).not.toContain('    at ')
})

test('doctor reports koffi used in place of the addon', () => {
  const { output, code } = doctor([], {
    ...nothing,
    SHOAL_CUDA_LIBRARY: '',
    SHOAL_DEVICE: 'sim',
    SHOAL_FFI_ENGINE: 'koffi',
  })
  expect(code).toBe(0)
  expect(output).toContain('koffi makes the calls (SHOAL_FFI_ENGINE), raw ones only')
  expect(output).toContain('0  Shoal Software Device')
})
