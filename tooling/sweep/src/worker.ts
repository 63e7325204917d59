// Runs one task in a separate process, so that a library that crashes affects nothing else.
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { LibraryName } from '@shoal/bindgen/dist/spec/types.js'
import { addressOf, type NativeLibrary } from '@shoal/ffi'
import { streamMode } from '@shoal/types'
import { groupsOf } from './list.js'
import { resolveAll } from './resolve.js'
import { importLibrary, Side } from './side.js'
import { readSpecs } from './spec.js'

/** What `probe` writes. */
export interface Probe {
  readonly path: string
  readonly step: string
  readonly version: string | null
  /** for the driver: the number of devices, or the status of `cuInit` if it is not 0 */
  readonly devices?: number
  readonly initStatus?: number
}

const text = { type: 'string' } as const
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { library: text, group: text, spec: text, kernels: text, out: text },
})
const id = values.library as LibraryName
const outFile = values.out ?? ''
const { exports, library } = await importLibrary(id)
// NVML returns its version after this call only.
if (id === 'nvml') (exports['nvmlInit'] as () => number)()

function spec() {
  const found = readSpecs(values.spec ?? '').get(id)
  if (found === undefined) throw new Error(`no spec of ${id} in ${values.spec}`)
  return found
}

function probe(): Probe {
  const { path, step } = library.load()
  return { path, step, version: library.versionText ?? null, ...(id === 'driver' ? countDevices(library) : {}) }
}

function countDevices(_: NativeLibrary): Pick<Probe, 'devices' | 'initStatus'> {
  const { cuInit, cuDeviceGetCount } = exports as Record<string, (...values: unknown[]) => number>
  const initStatus = cuInit?.(0) ?? -1
  if (initStatus !== 0) return { devices: 0, initStatus }
  const count = new Int32Array(1)
  return { devices: cuDeviceGetCount?.(addressOf(count)) === 0 ? (count[0] ?? 0) : 0 }
}

function ask(): void {
  const group = groupsOf(spec()).find(({ name }) => name === values.group)
  if (group === undefined) throw new Error(`there is no group ${values.group}`)
  const file = openSync(outFile, 'w')
  try {
    new Side(spec(), exports, values.kernels ?? '').run(group, (line) => writeSync(file, `${JSON.stringify(line)}\n`))
  } finally {
    closeSync(file)
  }
}

const [task] = positionals
if (task === 'probe') writeFileSync(outFile, JSON.stringify(probe()))
else if (task === 'resolve') writeFileSync(outFile, JSON.stringify(resolveAll(spec(), library, streamMode())))
else if (task === 'ask') ask()
else throw new Error(`unknown task: ${task}`)
