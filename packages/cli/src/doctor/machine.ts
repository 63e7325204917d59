import { readdirSync, readFileSync } from 'node:fs'
import { cpus, networkInterfaces, totalmem } from 'node:os'
import { join } from 'node:path'
import type { MachineReport, NetworkReport } from './report.js'

/** Packages that determine the driver. */
const driverPackage = /^(?:nvidia-driver|libnvidia-compute|cuda-drivers|cuda-compat|nvidia-fabricmanager|nvidia-imex)\b/

/**
 * Reads facts about the machine from files. Never throws.
 *
 * @param root - root folder of the system's files
 */
export function examineMachine(root = '/'): MachineReport {
  const text = (path: string): string | undefined => {
    try {
      return readFileSync(join(root, path), 'utf8').trim()
    } catch {
      return undefined // missing or unreadable: omitted from the report
    }
  }
  const names = (path: string): string[] => {
    try {
      return readdirSync(join(root, path)).sort()
    } catch {
      return []
    }
  }
  const distribution = /^PRETTY_NAME="?([^"\n]*)/m.exec(text('etc/os-release') ?? '')?.[1]
  const processor = cpus()[0]?.model.trim()
  const nodes = names('sys/devices/system/node').filter((name) => /^node\d+$/.test(name))
  return {
    ...(distribution === undefined ? {} : { distribution }),
    ...(processor === undefined || processor === '' ? {} : { processor }),
    memoryBytes: totalmem(),
    numaNodes: nodes.map((name) => ({
      node: Number(name.slice(4)),
      cpus: text(`sys/devices/system/node/${name}/cpulist`) ?? '',
    })),
    networks: [
      ...names('sys/class/infiniband').map((name) => adapter(name, text, names)),
      ...Object.entries(networkInterfaces())
        .filter(([, addresses]) => addresses?.some(({ internal }) => !internal))
        .map(([name]) => ({
          name,
          kind: 'ethernet' as const,
          ...numaOf(text(`sys/class/net/${name}/device/numa_node`)),
        })),
    ],
    driverPackages: installed(text('var/lib/dpkg/status') ?? ''),
  }
}

/** Returns the NUMA node of a PCI device, if the system reports it. */
export function numaNodeOf(pciBusId: string, root = '/'): { readonly numaNode?: number } {
  const name = pciBusId.toLowerCase().replace(/^0{4}(?=[\da-f]{4}:)/, '')
  try {
    return numaOf(readFileSync(join(root, 'sys/bus/pci/devices', name, 'numa_node'), 'utf8'))
  } catch {
    return {}
  }
}

/** The system reports -1 if there is only one node, or if the node is unknown. */
function numaOf(text: string | undefined): { readonly numaNode?: number } {
  const numaNode = Number(text ?? -1)
  return numaNode >= 0 ? { numaNode } : {}
}

function adapter(
  name: string,
  text: (path: string) => string | undefined,
  names: (path: string) => string[],
): NetworkReport {
  const folder = `sys/class/infiniband/${name}`
  const [port] = names(`${folder}/ports`)
  const of = (file: string): string => (text(`${folder}/ports/${port}/${file}`) ?? '').replace(/^\d+: /, '')
  const link = [of('link_layer'), of('state'), of('rate')].filter((part) => part !== '').join(', ')
  return { name, kind: 'rdma', link, ...numaOf(text(`${folder}/device/numa_node`)) }
}

/** Reads names and versions from Debian's package list. */
function installed(status: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of status.split('\n\n')) {
    const lines = entry.split('\n')
    const field = (name: string): string =>
      lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? ''
    if (driverPackage.test(field('Package')) && field('Status').endsWith(' installed')) {
      found[field('Package')] = field('Version')
    }
  }
  return found
}
