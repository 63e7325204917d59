#!/usr/bin/env node
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Device, isSoftwareDevice } from '@shoal/driver'
import { definedLibraries } from '@shoal/ffi'
import { methodTitles, nodeToPython, pythonToNode, type SharingMethod, sharingMethods } from './exchanges.js'
import { PythonPeer } from './pythonPeer.js'

const usage = `usage: shoal-interop [options]

Memory between Node.js and Python, both ways: by a legacy IPC handle, by a POSIX descriptor, and from a pool.

options
  --through LIST   libraries on Python's side, with commas: libcuda (ctypes), cuda.bindings, CuPy, PyTorch
                   (default: all; on the software device libcuda, which is all it serves)
  --python FILE    the interpreter (default: PYTHON, else python3)
  --json FILE      writes the outcome as JSON

The exit status is 1 when anything was not as it should be; a library that is missing counts.`

const allLibraries = ['libcuda', 'cuda.bindings', 'CuPy', 'PyTorch']

/** The result of one exchange. */
interface Exchange {
  readonly library: string
  readonly direction: 'Node → Python' | 'Python → Node'
  readonly method: SharingMethod
  readonly title: string
  readonly bytes?: number
  readonly milliseconds?: number
  readonly error?: string
}

interface LibraryOutcome {
  readonly library: string
  readonly version?: string | null
  readonly python?: string
  readonly error?: string
}

const { values } = parseArgs({
  options: {
    through: { type: 'string' },
    python: { type: 'string' },
    json: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
})
if (values.help === true) console.log(usage)
else process.exitCode = await main()

async function main(): Promise<number> {
  const [device] = Array.from(Device.all())
  if (device === undefined) throw new Error('there is no device')
  const wanted = values.through?.split(',') ?? (isSoftwareDevice() ? ['libcuda'] : allLibraries)
  const unknown = wanted.filter((name) => !allLibraries.includes(name))
  if (unknown.length > 0) throw new Error(`unknown library ${unknown.join(', ')}; there are ${allLibraries.join(', ')}`)
  const python = values.python ?? (process.env['PYTHON'] || 'python3')
  const libraries: LibraryOutcome[] = []
  const exchanges: Exchange[] = []
  const folder = mkdtempSync(join(tmpdir(), 'shoal-interop-'))
  try {
    const start = (library: string): Promise<PythonPeer> =>
      PythonPeer.start(python, library, libcudaPath(), join(folder, 'socket'))
    for (const library of wanted) {
      try {
        libraries.push(await exchangeAll(device, library, start, exchanges))
      } catch (error) {
        libraries.push({ library, error: messageOf(error) })
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  print(device, libraries, exchanges)
  if (values.json !== undefined) {
    writeFileSync(
      values.json,
      `${JSON.stringify({ interop: { device: device.name, libraries, exchanges } }, undefined, 2)}\n`,
    )
  }
  const failed = [...libraries, ...exchanges].filter(({ error }) => error !== undefined)
  return failed.length === 0 && exchanges.length > 0 ? 0 : 1
}

async function exchangeAll(
  device: Device,
  library: string,
  start: (library: string) => Promise<PythonPeer>,
  exchanges: Exchange[],
): Promise<LibraryOutcome> {
  let peer = await start(library)
  const { facts } = peer
  try {
    for (const [direction, exchange] of [
      ['Node → Python', nodeToPython],
      ['Python → Node', pythonToNode],
    ] as const) {
      for (const method of sharingMethods) {
        const begin = performance.now()
        const about = { library, direction, method, title: methodTitles[method] }
        try {
          const bytes = await exchange(method, device, peer)
          exchanges.push({ ...about, bytes, milliseconds: Math.round(performance.now() - begin) })
        } catch (error) {
          exchanges.push({ ...about, error: messageOf(error) })
          // The two processes may now expect different messages, and Python may have lost its context.
          await peer.close()
          peer = await start(library)
        }
      }
    }
  } finally {
    await peer.close()
  }
  return facts
}

function print(device: Device, libraries: readonly LibraryOutcome[], exchanges: readonly Exchange[]): void {
  console.log(
    `Memory between Node.js ${process.version} and Python on ${device.name}, every byte compared on both sides\n`,
  )
  for (const { library, version, python, error } of libraries) {
    if (error !== undefined) console.log(`FAILED  ${library}: ${error}`)
    else console.log(`Python ${python} with ${library}${version ? ` ${version}` : ''}`)
    for (const one of exchanges.filter((exchange) => exchange.library === library)) {
      const words = `${one.direction}, ${one.title}`
      if (one.error !== undefined) console.log(`FAILED  ${words}: ${one.error}`)
      else console.log(`passed  ${words}: ${one.bytes} bytes, ${one.milliseconds} ms`)
    }
  }
}

/** Returns the path of the library that this process loaded, so that Python loads the same file. */
function libcudaPath(): string {
  const library = definedLibraries().find(({ id }) => id === 'cuda')
  if (library === undefined) throw new Error('no package has defined libcuda')
  return library.load().path
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
