import type { AddonReport, LibraryReport } from '@shoal/ffi'
import type { DeviceReport, DoctorReport, Finding, LinkReport, MachineReport } from './report.js'

/** Formats the report for an issue: folded, with `~` for the home folder. */
export function markdown(report: DoctorReport, home: string): string {
  const count = (level: Finding['level']): number => report.findings.filter((one) => one.level === level).length
  const text = printable(report, false)
  const shown = home.length > 1 ? text.replaceAll(home, '~') : text
  const title = `shoal doctor: errors ${count('error')}, warnings ${count('warning')}`
  return `<details>\n<summary>${title}</summary>\n\n\`\`\`text\n${shown}\n\`\`\`\n\n</details>`
}

/** Formats the report for people. @param verbose - includes every searched place */
export function printable(report: DoctorReport, verbose: boolean): string {
  const { system, addon, libraries, devices, links, findings, nvshmemPlugins } = report
  const sections = [
    section('System', [
      `Shoal ${system.shoal}, Node ${system.node}, ${system.platform}, ${system.cpus} CPUs`,
      ...(system.machine === undefined ? [] : machineLines(system.machine)),
      ...(system.kernelModule === undefined ? [] : [`NVIDIA kernel module ${system.kernelModule}`]),
      ...(system.sharedMemoryBytes === undefined ? [] : [`/dev/shm ${bytes(system.sharedMemoryBytes)}`]),
      addonLine(addon),
      ...Object.entries(system.launchers).map(([name, path]) => `${name}: ${path}`),
    ]),
    section(
      'Libraries',
      libraries.flatMap((library) => libraryLines(library, verbose)),
    ),
    ...(nvshmemPlugins.length === 0 || !verbose ? [] : [section('NVSHMEM plugins', nvshmemPlugins)]),
    section('Devices', devices.length === 0 ? ['none'] : devices.map(deviceLine)),
    ...(links.length === 0 ? [] : [section('Links', linkLines(devices, links))]),
    ...(Object.keys(system.environment).length === 0
      ? []
      : [
          section(
            'Environment',
            Object.entries(system.environment).map(([name, value]) => `${name}=${value}`),
          ),
        ]),
    section('Findings', findings.length === 0 ? ['nothing is missing'] : findings.flatMap(findingLines)),
  ]
  return sections.join('\n\n')
}

function section(title: string, lines: readonly string[]): string {
  return [title, ...lines.map((line) => `  ${line}`)].join('\n')
}

function machineLines({
  distribution,
  processor,
  memoryBytes,
  numaNodes,
  networks,
  driverPackages,
}: MachineReport): string[] {
  const packages = Object.entries(driverPackages).map(([name, version]) => `${name} ${version}`)
  return [
    [distribution, processor, `${bytes(memoryBytes)} of memory`].filter((part) => part !== undefined).join(', '),
    ...(numaNodes.length < 2
      ? []
      : [`NUMA: ${numaNodes.map(({ node, cpus }) => `node ${node} CPUs ${cpus}`).join('; ')}`]),
    ...networks.map(({ name, kind, link, numaNode }) =>
      [`network ${name}`, kind === 'rdma' ? 'RDMA' : undefined, link, numaText(numaNode)]
        .filter((part) => part !== undefined && part !== '')
        .join(', '),
    ),
    ...(packages.length === 0 ? [] : [`driver packages: ${packages.join(', ')}`]),
  ]
}

function numaText(numaNode: number | undefined): string | undefined {
  return numaNode === undefined ? undefined : `NUMA node ${numaNode}`
}

function addonLine({ loaded, engine }: AddonReport): string {
  if (engine === 'koffi') return 'koffi makes the calls (SHOAL_FFI_ENGINE), raw ones only'
  return `addon of @shoal/ffi ${loaded ? 'loads' : 'DOES NOT LOAD'}`
}

function libraryLines({ title, found, path, step, version, attempts }: LibraryReport, verbose: boolean): string[] {
  const head = found ? `${title} ${version ?? '(version unknown)'}: ${path} (${step})` : `${title}: not found`
  if (!verbose) return [head]
  return [
    head,
    ...attempts.map(({ step: place, candidate, outcome }) => `    ${place}  ${candidate}: ${outcome.trim()}`),
  ]
}

function deviceLine(device: DeviceReport): string {
  const { ordinal, name, computeCapability, multiprocessors, totalBytes, pciBusId, uuid, isSoftware } = device
  const what = isSoftware ? ' (SOFTWARE: this CPU, no GPU)' : ''
  const details = [
    `compute capability ${computeCapability}`,
    `${multiprocessors} multiprocessors`,
    bytes(totalBytes),
    pciBusId,
    uuid,
    ...(device.hasMulticast ? ['multicast'] : []),
    ...(device.numaNode === undefined ? [] : [`NUMA node ${device.numaNode}`]),
  ]
  return `${ordinal}  ${name}${what}: ${details.join(', ')}`
}

/** Formats a table of links: from the row's device to the column's. */
function linkLines(devices: readonly DeviceReport[], links: readonly LinkReport[]): string[] {
  const cell = (from: number, to: number): string => {
    const link = links.find((one) => one.from === from && one.to === to)
    if (link === undefined) return '-'
    return link.hasAccess ? (link.hasNativeAtomics ? 'NV' : 'P2P') : 'SYS'
  }
  const ordinals = devices.map(({ ordinal }) => ordinal)
  return [
    `     ${ordinals.map((ordinal) => String(ordinal).padEnd(4)).join('')}`.trimEnd(),
    ...ordinals.map((from) =>
      `${String(from).padEnd(5)}${ordinals.map((to) => cell(from, to).padEnd(4)).join('')}`.trimEnd(),
    ),
    'NV: direct access with atomic operations, as over NVLink. P2P: direct access, as over PCIe. SYS: through host memory.',
  ]
}

function findingLines({ level, subject, message, remedies }: Finding): string[] {
  const head = `${level}: ${subject}: ${message.replaceAll('\n', '\n    ')}`
  return [head, ...remedies.map((remedy) => `    → ${remedy}`)]
}

function bytes(count: number): string {
  return count >= 2 ** 30 ? `${(count / 2 ** 30).toFixed(1)} GiB` : `${Math.round(count / 2 ** 20)} MiB`
}
