import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, networkInterfaces, release, tmpdir, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { Device } from '@shoal/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { StatusError } from '@shoal/types'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { examineDevices } from '../src/doctor/devices.js'
import { examineMachine, numaNodeOf } from '../src/doctor/machine.js'
import { markdown, printable } from '../src/doctor/print.js'
import type { DeviceReport, DoctorReport } from '../src/doctor/report.js'
import { examineSystem } from '../src/doctor/system.js'
import { shoalVersion } from '../src/version.js'

// No test can produce some of these system answers.
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>()
  return { ...fs, readFileSync: vi.fn(fs.readFileSync), statfsSync: vi.fn(fs.statfsSync) }
})
vi.mock('node:os', async (original) => {
  const os = await original<typeof import('node:os')>()
  return { ...os, cpus: vi.fn(os.cpus), networkInterfaces: vi.fn(os.networkInterfaces) }
})

useSoftwareDevice({ devices: 2 })
const folder = mkdtempSync(join(tmpdir(), 'shoal-report-'))
afterAll(() => rmSync(folder, { recursive: true }))
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

describe('the system section', () => {
  const [readFile, readSize] = [vi.mocked(readFileSync), vi.mocked(statfsSync)]
  const [plainRead, plainSize] = [readFile.getMockImplementation()!, readSize.getMockImplementation()!]
  let module: () => string
  beforeEach(() => {
    module = () => plainRead('/nowhere/version', 'utf8') as string
    readFile.mockImplementation(((path: string, ...more: never[]) =>
      path === '/proc/driver/nvidia/version' ? module() : plainRead(path, ...more)) as never)
    readSize.mockImplementation(((path: string) => {
      expect(path).toBe('/dev/shm')
      return { bsize: 4096, blocks: 1000 }
    }) as never)
  })
  afterEach(() => {
    readFile.mockImplementation(plainRead)
    readSize.mockImplementation(plainSize)
  })
  const failure = (code: string) => () => {
    throw Object.assign(new Error(`${code}: it fails`), { code })
  }

  test('has versions and sizes', () => {
    const { system, findings } = examineSystem()
    expect(findings).toEqual([])
    expect(system).toMatchObject({ shoal: shoalVersion(), node: process.version, cpus: availableParallelism() })
    expect(system).toMatchObject({ sharedMemoryBytes: 4_096_000, machine: { memoryBytes: totalmem() } })
    expect(system).not.toHaveProperty('kernelModule')
  })

  test.each([
    ['2.36', `${process.platform}-${process.arch}, glibc 2.36, kernel ${release()}`],
    [undefined, `${process.platform}-${process.arch}, kernel ${release()}`],
  ])('glibc %s', (version, platform) => {
    vi.spyOn(process.report, 'getReport').mockReturnValue({ header: { glibcVersionRuntime: version } } as never)
    expect(examineSystem().system.platform).toBe(platform)
  })

  test.each([
    ['NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan\nGCC version: 12.2.0 \n', '570.86.15'],
    ['NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65  Release\n', '580.65'],
    ['NVRM version: none of those\nGCC\n', 'NVRM version: none of those'],
  ])('kernel module: %j', (text, version) => {
    module = () => text
    expect(examineSystem().system.kernelModule).toBe(version)
  })

  test('warns about unreadable files, and ignores missing files', () => {
    for (const code of ['ENOENT', 'ENOTDIR']) {
      module = failure(code)
      readSize.mockImplementation(failure(code) as never)
      const { system, findings } = examineSystem()
      expect(findings).toEqual([])
      expect(system).not.toHaveProperty('sharedMemoryBytes')
    }
    module = failure('EACCES')
    readSize.mockImplementation(failure('EIO') as never)
    const { system, findings } = examineSystem()
    expect(findings).toEqual([
      { level: 'warning', subject: 'the NVIDIA kernel module', message: 'EACCES: it fails', remedies: [] },
      { level: 'warning', subject: 'shared memory', message: 'EIO: it fails', remedies: [] },
    ])
    expect(system).not.toHaveProperty('kernelModule')
  })

  test('lists settable variables in order, without secrets', () => {
    for (const name of Object.keys(process.env)) vi.stubEnv(name, undefined)
    const told = [
      ...['CUDA_VISIBLE_DEVICES', 'LD_LIBRARY_PATH', 'NCCL_DEBUG', 'NVIDIA_DRIVER_CAPABILITIES'],
      ...['NVIDIA_IMEX_CHANNELS', 'NVIDIA_TF32_OVERRIDE', 'NVIDIA_VISIBLE_DEVICES', 'NVSHMEM_DEBUG', 'SHOAL_DEVICE'],
    ]
    const others = [
      ...['SHOAL_SECRET', 'NCCL_API_KEY', 'CUDA_TOKEN_FILE', 'NVSHMEM_PASSWORD', 'CUDA', 'MY_SHOAL_X', 'PATH', 'HOME'],
      ...['NVIDIA_REQUIRE_CUDA', 'NVIDIA_VISIBLE_DEVICES_2', 'X_LD_LIBRARY_PATH', 'LD_LIBRARY_PATH_64'],
    ]
    for (const name of [...others, ...[...told].reverse()]) vi.stubEnv(name, `of ${name}`)
    const { environment } = examineSystem().system
    expect(Object.entries(environment)).toEqual(told.map((name) => [name, `of ${name}`]))
  })

  test('lists the launchers that the shell would start', () => {
    const place = (name: string, mode: number): string => {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), '')
      chmodSync(join(folder, name), mode)
      return join(folder, name)
    }
    const launchers = {
      mpirun: place('b/mpirun', 0o755),
      'mpiexec.hydra': place('a/mpiexec.hydra', 0o755),
      srun: place('b/srun', 0o755),
      torchrun: place('b/torchrun', 0o755),
    }
    place('a/srun', 0o644)
    mkdirSync(join(folder, 'a/torchrun'))
    place('c/mpirun', 0o755)
    place('b/orterun', 0o755)
    vi.stubEnv('PATH', ['', 'a', 'b', 'c'].map((name) => (name === '' ? '' : join(folder, name))).join(':'))
    // An empty part of PATH does not mean the current folder.
    place('here/mpirun', 0o755)
    const before = process.cwd()
    process.chdir(join(folder, 'here'))
    try {
      expect(Object.entries(examineSystem().system.launchers)).toEqual(Object.entries(launchers))
      for (const path of ['', undefined]) {
        vi.stubEnv('PATH', path)
        expect(examineSystem().system.launchers).toEqual({})
      }
    } finally {
      process.chdir(before)
    }
  })
})

describe('the machine section', () => {
  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(folder, 'root-'))
    vi.mocked(cpus).mockReturnValue([{ model: '  A processor ' }, { model: 'another' }] as never)
    vi.mocked(networkInterfaces).mockReturnValue({})
  })
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const bare = { processor: 'A processor', memoryBytes: totalmem(), numaNodes: [], networks: [], driverPackages: {} }

  test('is short if system files are empty', () => {
    expect(examineMachine(root)).toEqual(bare)
    for (const models of [[], [{ model: ' ' }]]) {
      vi.mocked(cpus).mockReturnValue(models as never)
      const { processor: _, ...rest } = bare
      expect(examineMachine(root)).toEqual(rest)
    }
  })

  test.each([
    ['PRETTY_NAME="Ubuntu 24.04.2 LTS"\nNAME="Ubuntu"\n', 'Ubuntu 24.04.2 LTS'],
    ['NAME=x\nPRETTY_NAME=Alpine\n', 'Alpine'],
  ])('%j', (text, distribution) => {
    write('etc/os-release', text)
    expect(examineMachine(root)).toEqual({ ...bare, distribution })
  })

  test('has NUMA nodes with their processors', () => {
    write('sys/devices/system/node/node1/cpulist', '4-7\n')
    write('sys/devices/system/node/node0/cpulist', '0-3\n')
    write('sys/devices/system/node/node12/other', '')
    for (const name of ['possible', 'node', 'node1x', 'xnode1']) write(`sys/devices/system/node/${name}/cpulist`, '9')
    expect(examineMachine(root).numaNodes).toEqual([
      { node: 0, cpus: '0-3' },
      { node: 1, cpus: '4-7' },
      { node: 12, cpus: '' },
    ])
  })

  test('has adapters with the link of their first port, and outgoing interfaces', () => {
    const port = (name: string, number: number, file: string, text: string): void =>
      write(`sys/class/infiniband/${name}/ports/${number}/${file}`, text)
    port('mlx5_1', 1, 'link_layer', 'Ethernet\n')
    port('mlx5_1', 1, 'state', '1: DOWN\n')
    port('mlx5_1', 2, 'state', '4: ACTIVE\n')
    write('sys/class/infiniband/mlx5_1/device/numa_node', '-1\n')
    port('mlx5_0', 1, 'rate', '400 Gb/sec (4X NDR)\n')
    write('sys/class/infiniband/mlx5_0/device/numa_node', '0\n')
    write('sys/class/infiniband/mlx5_2/board_id', 'x')
    write('sys/class/net/eth0/device/numa_node', '1\n')
    const [inside, outside] = [{ internal: true }, { internal: false }]
    vi.mocked(networkInterfaces).mockReturnValue({
      ...{ lo: [inside], eth0: [inside, outside], eth1: [outside], empty: [], none: undefined },
    } as never)
    expect(examineMachine(root).networks).toEqual([
      { name: 'mlx5_0', kind: 'rdma', link: '400 Gb/sec (4X NDR)', numaNode: 0 },
      { name: 'mlx5_1', kind: 'rdma', link: 'Ethernet, DOWN' },
      { name: 'mlx5_2', kind: 'rdma', link: '' },
      { name: 'eth0', kind: 'ethernet', numaNode: 1 },
      { name: 'eth1', kind: 'ethernet' },
    ])
  })

  test('has the installed driver packages', () => {
    const entry = (name: string, status = 'install ok installed', version = 'Version: 1\n'): string =>
      `Package: ${name}\nStatus: ${status}\n${version}Depends: x\n`
    const there = [
      ...['nvidia-driver-580', 'libnvidia-compute-580', 'cuda-drivers', 'cuda-compat-12-9', 'nvidia-fabricmanager'],
      'nvidia-imex',
    ]
    const others = [
      ...['bash', 'my-nvidia-driver', 'nvidia-drivers', 'cuda-toolkit'].map((name) => entry(name)),
      ...['deinstall ok config-files', 'install ok half-installed', 'x'].map((status) =>
        entry('cuda-drivers-1', status),
      ),
      'Package: cuda-drivers-2\n',
    ]
    const all = [...others, ...there.map((name) => entry(name)), entry('nvidia-imex-2', undefined, '')]
    write('var/lib/dpkg/status', all.join('\n'))
    expect(examineMachine(root).driverPackages).toEqual({
      ...Object.fromEntries(there.map((name) => [name, '1'])),
      'nvidia-imex-2': '',
    })
  })

  test('knows the NUMA node of a device', () => {
    const device = (name: string, node: string): void => write(`sys/bus/pci/devices/${name}/numa_node`, node)
    device('0000:9b:00.0', '0\n')
    device('0001:9b:00.0', '1\n')
    device('00010000:9b:00.0', '2\n')
    device('0000:03:00.0', '-1\n')
    expect(numaNodeOf('0000:9B:00.0', root)).toEqual({ numaNode: 0 })
    expect(numaNodeOf('00000000:9B:00.0', root)).toEqual({ numaNode: 0 })
    expect(numaNodeOf('00000001:9b:00.0', root)).toEqual({ numaNode: 1 })
    expect(numaNodeOf('00010000:9b:00.0', root)).toEqual({ numaNode: 2 })
    expect([numaNodeOf('0000:03:00.0', root), numaNodeOf('0000:04:00.0', root)]).toEqual([{}, {}])
  })
})

describe('the devices section', () => {
  const only = (message: string, ...remedies: string[]) => ({
    ...{ devices: [], links: [] },
    findings: [{ level: 'error', subject: 'devices', message, remedies }],
  })

  test('has all properties of the driver, and links to all other devices', () => {
    const [first, second] = [Device.get(0), Device.get(1)]
    const { devices, links, findings } = examineDevices()
    expect(devices).toEqual(
      [first, second].map((device) => ({
        ...{ ordinal: device.ordinal, name: device.name, uuid: device.uuid, pciBusId: device.pciBusId },
        ...{ computeCapability: '9.0', totalBytes: device.totalMemory, isSoftware: true, hasMulticast: true },
        multiprocessors: device.attribute('MULTIPROCESSOR_COUNT'),
      })),
    )
    const link = { hasAccess: true, hasNativeAtomics: first.peerAttribute('NATIVE_ATOMIC_SUPPORTED', second) === 1 }
    const performanceRank = first.peerAttribute('PERFORMANCE_RANK', second)
    expect(links).toEqual([
      { from: 0, to: 1, ...link, performanceRank },
      { from: 1, to: 0, ...link, performanceRank },
    ])
    expect(findings).toEqual([])
  })

  test('has capabilities and locations of hardware devices', () => {
    const made = (ordinal: number, can: number) => ({
      ...{ ordinal, name: 'X', uuid: 'u', pciBusId: '0000:ff:1f.7', totalMemory: 5, isSoftware: false },
      computeCapability: { major: 8, minor: 6 },
      attribute: (name: string) => (name === 'MULTICAST_SUPPORTED' ? can : 77),
      canAccessPeer: () => can === 1,
      peerAttribute: (name: string) => (name === 'NATIVE_ATOMIC_SUPPORTED' ? can : 3),
    })
    vi.spyOn(Device, 'all').mockReturnValue([made(0, 0), made(1, 1)] as never)
    const { devices, links } = examineDevices()
    const common = { name: 'X', uuid: 'u', pciBusId: '0000:ff:1f.7', computeCapability: '8.6', totalBytes: 5 }
    const node = numaNodeOf('0000:ff:1f.7')
    expect(devices).toEqual([
      { ordinal: 0, ...common, isSoftware: false, multiprocessors: 77, hasMulticast: false, ...node },
      { ordinal: 1, ...common, isSoftware: false, multiprocessors: 77, hasMulticast: true, ...node },
    ])
    expect(links).toEqual([
      { from: 0, to: 1, hasAccess: false, hasNativeAtomics: false, performanceRank: 3 },
      { from: 1, to: 0, hasAccess: true, hasNativeAtomics: true, performanceRank: 3 },
    ])
  })

  test('explains an empty list of devices', () => {
    vi.spyOn(Device, 'all').mockReturnValue([])
    vi.stubEnv('CUDA_VISIBLE_DEVICES', undefined)
    const remedy = 'check that the GPU is visible: nvidia-smi, CUDA_VISIBLE_DEVICES, and --gpus of a container'
    expect(examineDevices()).toEqual(only('the driver sees no GPU', remedy))
    vi.stubEnv('CUDA_VISIBLE_DEVICES', '9')
    const words = "CUDA_VISIBLE_DEVICES is '9', which hides all GPUs"
    expect(examineDevices()).toEqual(only(words, 'unset it, or name devices that exist'))
  })

  test.each([
    ['CUDA_ERROR_NO_DEVICE', 'check that the GPU is visible'],
    ['CUDA_ERROR_SYSTEM_NOT_READY', 'on machines with NVSwitch, start'],
    ['CUDA_ERROR_SYSTEM_DRIVER_MISMATCH', 'libcuda and the kernel module are of different versions'],
    ['CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE', 'a libcuda for forward compatibility'],
    ['CUDA_ERROR_UNKNOWN', 'check that the kernel module is loaded'],
    ['CUDA_ERROR_MPS_CONNECTION_FAILED', 'the MPS daemon does not answer'],
    ['CUDA_ERROR_OTHER', undefined],
  ])('reports a driver error: %s', (code, remedy) => {
    const error = new StatusError({ code, library: 'CUDA', api: 'cuInit', status: 1, description: 'x' } as never)
    vi.spyOn(Device, 'all').mockImplementation(() => {
      throw error
    })
    const remedies = remedy === undefined ? [] : [expect.stringContaining(remedy)]
    expect(examineDevices()).toEqual(only(error.message.split('\n')[0]!, ...remedies))
  })

  test.each([
    [new Error('one\ntwo'), 'one'],
    ['a text', 'a text'],
  ])('reports other errors by their first line', (thrown, message) => {
    vi.spyOn(Device, 'all').mockImplementation(() => {
      throw thrown
    })
    expect(examineDevices()).toEqual(only(message))
  })
})

describe('the report in words', () => {
  const device = (ordinal: number, changed: Partial<DeviceReport> = {}): DeviceReport => ({
    ...{ ordinal, name: 'GPU X', uuid: 'GPU-u', pciBusId: '0000:01:00.0', computeCapability: '9.0' },
    ...{ totalBytes: 2 ** 30, isSoftware: false, multiprocessors: 132, hasMulticast: false },
    ...changed,
  })
  const system = {
    ...{ shoal: '1.2.3', node: 'v20', platform: 'linux-x64', cpus: 8, kernelModule: '570.1' },
    ...{ sharedMemoryBytes: 2 ** 30 - 2 ** 20, environment: { A: '1', B: '' }, launchers: { srun: '/home/me/srun' } },
    machine: {
      ...{ distribution: 'Debian', processor: 'CPU Y', memoryBytes: 1.5 * 2 ** 30 },
      numaNodes: [
        { node: 0, cpus: '0-3' },
        { node: 1, cpus: '4-7' },
      ],
      networks: [
        { name: 'mlx5_0', kind: 'rdma' as const, link: 'IB, ACTIVE', numaNode: 0 },
        { name: 'mlx5_1', kind: 'rdma' as const, link: '' },
        { name: 'eth0', kind: 'ethernet' as const, numaNode: 1 },
        { name: 'eth1', kind: 'ethernet' as const },
      ],
      driverPackages: { a: '1', b: '2' },
    },
  }
  const report: DoctorReport = {
    system,
    addon: { loaded: true },
    libraries: [
      {
        ...{ id: 'a', title: 'Lib A', found: true, path: '/a.so', step: 'name', version: '1.2' },
        attempts: [{ step: 'environment', candidate: '/x', outcome: ' no\n' }] as never,
      },
      { id: 'b', title: 'Lib B', found: true, path: '/b.so', step: 'sim', attempts: [] },
      { id: 'c', title: 'Lib C', found: false, attempts: [{ step: 'name', candidate: 'c', outcome: 'no' }] as never },
    ],
    nvshmemPlugins: ['p.so', 'q.so'],
    devices: [
      device(0, { hasMulticast: true, numaNode: 0 }),
      device(10, { totalBytes: 2 ** 30 - 1, isSoftware: true }),
    ],
    links: [
      { from: 0, to: 10, hasAccess: true, hasNativeAtomics: false, performanceRank: 0 },
      { from: 10, to: 0, hasAccess: false, hasNativeAtomics: true, performanceRank: 0 },
    ],
    findings: [
      { level: 'error', subject: 'S', message: 'one\ntwo', remedies: ['do this', 'or that'] },
      { level: 'warning', subject: 'T', message: 'three', remedies: [] },
    ],
  }
  const bare: DoctorReport = {
    system: { ...{ shoal: '1', node: 'v20', platform: 'p', cpus: 1 }, environment: {}, launchers: {} },
    addon: { loaded: false },
    ...{ libraries: [], nvshmemPlugins: [], devices: [], links: [], findings: [] },
  }

  const sections = {
    head: `System
  Shoal 1.2.3, Node v20, linux-x64, 8 CPUs
  Debian, CPU Y, 1.5 GiB of memory
  NUMA: node 0 CPUs 0-3; node 1 CPUs 4-7
  network mlx5_0, RDMA, IB, ACTIVE, NUMA node 0
  network mlx5_1, RDMA
  network eth0, NUMA node 1
  network eth1
  driver packages: a 1, b 2
  NVIDIA kernel module 570.1
  /dev/shm 1023 MiB
  addon of @shoal/ffi loads
  srun: /home/me/srun`,
    brief: `Libraries
  Lib A 1.2: /a.so (name)
  Lib B (version unknown): /b.so (sim)
  Lib C: not found`,
    long: `Libraries
  Lib A 1.2: /a.so (name)
      environment  /x: no
  Lib B (version unknown): /b.so (sim)
  Lib C: not found
      name  c: no

NVSHMEM plugins
  p.so
  q.so`,
    rest: `Devices
  0  GPU X: compute capability 9.0, 132 multiprocessors, 1.0 GiB, 0000:01:00.0, GPU-u, multicast, NUMA node 0
  10  GPU X (SOFTWARE: this CPU, no GPU): compute capability 9.0, 132 multiprocessors, 1024 MiB, 0000:01:00.0, GPU-u

Links
       0   10
  0    -   P2P
  10   SYS -
  NV: direct access with atomic operations, as over NVLink. P2P: direct access, as over PCIe. SYS: through host memory.

Environment
  A=1
  B=

Findings
  error: S: one
    two
      → do this
      → or that
  warning: T: three`,
  }

  test('is brief, and has all attempts on request', () => {
    expect(printable(report, false)).toBe([sections.head, sections.brief, sections.rest].join('\n\n'))
    expect(printable(report, true)).toBe([sections.head, sections.long, sections.rest].join('\n\n'))
  })

  test.each([
    [{ loaded: false }, 'addon of @shoal/ffi DOES NOT LOAD'],
    [{ loaded: true, engine: 'addon' as const }, 'addon of @shoal/ffi loads'],
    [{ loaded: true, engine: 'koffi' as const }, 'koffi makes the calls (SHOAL_FFI_ENGINE), raw ones only'],
  ])('describes a machine without anything, and %j', (addon, line) => {
    const text = `System
  Shoal 1, Node v20, p, 1 CPUs
  ${line}

Libraries

Devices
  none

Findings
  nothing is missing`
    for (const verbose of [false, true]) expect(printable({ ...bare, addon }, verbose)).toBe(text)
  })

  test('describes a machine with little information', () => {
    const machine = { memoryBytes: 2 ** 20, numaNodes: [{ node: 0, cpus: '0' }], networks: [], driverPackages: {} }
    const lines = printable({ ...bare, system: { ...bare.system, machine } }, false).split('\n')
    expect(lines.slice(2, 4)).toEqual(['  1 MiB of memory', '  addon of @shoal/ffi DOES NOT LOAD'])
  })

  test('omits names of folders for an issue', () => {
    const text = `<details>
<summary>shoal doctor: errors 1, warnings 1</summary>

\`\`\`text
${[sections.head.replace('/home/me', '~'), sections.brief, sections.rest].join('\n\n')}
\`\`\`

</details>`
    expect(markdown(report, '/home/me')).toBe(text)
    // A folder that every path contains, and an empty name.
    for (const home of ['/', '']) expect(markdown(report, home)).toBe(text.replace('~', '/home/me'))
  })
})
