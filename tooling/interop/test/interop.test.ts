import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DescriptorServer, type DescriptorSocket } from '@shoal/ffi'
import { libraries, libraryFolder } from '@shoal/sim'
import { describe, expect, type TestContext, test } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { startPython } from './startPython.js'

const run = fileURLToPath(new URL('../dist/run.js', import.meta.url))
const folder = scratchFolder()

/** The program needs recv_fds, which Python has since 3.9. */
function needsPython(context: TestContext): void {
  try {
    execFileSync('python3', ['-c', 'import socket; socket.recv_fds'], { stdio: 'pipe' })
  } catch {
    context.skip('no python3 with socket.recv_fds (3.9 or newer) on this machine')
  }
}

function needsSoftwareDevice(context: TestContext): void {
  if (!existsSync(join(libraryFolder(), libraries.cuda)))
    context.skip('the software device is not built for this platform')
}

function runInterop(...options: string[]) {
  const env = { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_CUDA_LIBRARY: '', PYTHON: '' }
  return spawnSync(process.execPath, [run, ...options], { encoding: 'utf8', env })
}

interface Report {
  readonly interop: {
    readonly libraries: readonly { readonly library: string; readonly error?: string }[]
    readonly exchanges: readonly { readonly direction: string; readonly method: string; readonly error?: string }[]
  }
}

describe('memory between Node and Python on the software device', () => {
  test('is shared in both directions by each method', (context) => {
    needsPython(context)
    needsSoftwareDevice(context)
    const json = join(folder, 'all.json')
    const { status, stdout, stderr } = runInterop('--json', json)
    expect(`${stdout}${stderr}`).not.toContain('FAILED')
    expect(status).toBe(0)
    const { exchanges } = (JSON.parse(readFileSync(json, 'utf8')) as Report).interop
    expect(exchanges.map(({ direction, method }) => `${direction} ${method}`)).toEqual(
      ['Node → Python', 'Python → Node'].flatMap((direction) =>
        ['ipc', 'descriptor', 'pool'].map((method) => `${direction} ${method}`),
      ),
    )
  })

  test('requires its Python package, whose absence fails the run', (context) => {
    needsPython(context)
    needsSoftwareDevice(context)
    const json = join(folder, 'missing.json')
    // Without site-packages only Python's own packages exist.
    const python = join(folder, 'python')
    writeFileSync(python, '#!/bin/sh\nexec python3 -S -E "$@"\n', { mode: 0o755 })
    const { status, stdout } = runInterop('--through', 'CuPy,libcuda', '--python', python, '--json', json)
    expect(status).toBe(1)
    expect(stdout).toContain('FAILED  CuPy: in Python: the Python package cupy is missing')
    const { libraries: found, exchanges } = (JSON.parse(readFileSync(json, 'utf8')) as Report).interop
    expect(found).toHaveLength(2)
    // The exchanges after the failure still run.
    expect(exchanges.filter(({ error }) => error === undefined)).toHaveLength(6)
  })

  test('is compared so that one wrong byte is detected on either side', (context) => {
    needsPython(context)
    needsSoftwareDevice(context)
    const json = join(folder, 'wrong.json')
    const python = join(folder, 'lying-python')
    const program = join(folder, 'lying.py')
    // Every write to the device changes its last byte.
    writeFileSync(
      program,
      `import os, runpy, sys
sys.dont_write_bytecode = True
sys.argv = sys.argv[2:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
import libcuda
write = libcuda.LibCuda.write
libcuda.LibCuda.write = lambda self, address, data: write(self, address, data[:-1] + bytes([data[-1] ^ 1]))
runpy.run_path(sys.argv[0], run_name="__main__")
`,
    )
    writeFileSync(python, `#!/bin/sh\nexec python3 ${program} "$@"\n`, { mode: 0o755 })
    const { status } = runInterop('--python', python, '--json', json)
    expect(status).toBe(1)
    const { exchanges } = (JSON.parse(readFileSync(json, 'utf8')) as Report).interop
    expect(exchanges.filter(({ error }) => error?.includes('what Python wrote back: 1 of'))).toHaveLength(3)
    expect(exchanges.filter(({ error }) => error?.includes('Node read other bytes'))).toHaveLength(3)
  })

  test('requires an interpreter, whose absence is an error instead of a hang', (context) => {
    needsSoftwareDevice(context)
    const { status, stdout } = runInterop('--python', join(folder, 'nowhere'))
    expect(status).toBe(1)
    expect(stdout).toContain('does not start')
  })
})

describe("messages between Shoal's DescriptorSocket and Python's", () => {
  async function withPython(program: string, use: (socket: DescriptorSocket) => Promise<void>): Promise<string> {
    const server = DescriptorServer.listen(join(folder, `${randomBytes(4).toString('hex')}.sock`))
    const python = startPython(program, server.path)
    try {
      const socket = await server.accept({ timeout: 300_000 })
      await use(socket)
      socket.dispose()
    } finally {
      server.dispose()
    }
    return python
  }

  test('arrive complete for every length, in both directions', async (context) => {
    needsPython(context)
    const program = `
while True:
    try:
        data, descriptors = peer.receive()
    except ConnectionResetError:
        break
    peer.send(data[::-1])
`
    await withPython(program, async (socket) => {
      for (const length of [0, 1, 7, 8, 9, 65_536, 300_001, 2 ** 20]) {
        const bytes = new Uint8Array(randomBytes(length))
        await socket.send({ bytes })
        const { bytes: back } = await socket.receive({ timeout: 300_000 })
        expect(Buffer.compare(back, Uint8Array.from(bytes).reverse())).toBe(0)
      }
    })
  })

  test('pass descriptors that refer to the same file', async (context) => {
    needsPython(context)
    const program = `
import os
data, descriptors = peer.receive()
text = b"|".join(os.read(descriptor, 100) for descriptor in descriptors)
reading, writing = os.pipe()
os.write(writing, b"from Python")
peer.send(text, [reading])
`
    const files = ['one', 'two', 'three'].map((text) => {
      const file = join(folder, text)
      writeFileSync(file, text)
      return openSync(file, 'r')
    })
    await withPython(program, async (socket) => {
      await socket.send({ bytes: Buffer.from('three files'), descriptors: files })
      for (const file of files) closeSync(file)
      const { bytes, descriptors } = await socket.receive({ timeout: 300_000 })
      expect(Buffer.from(bytes).toString()).toBe('one|two|three')
      const text = Buffer.alloc(100)
      expect(text.subarray(0, readSync(descriptors[0] as number, text)).toString()).toBe('from Python')
      closeSync(descriptors[0] as number)
    })
  })

  test('are refused by Python if malformed', async (context) => {
    needsPython(context)
    const program = `
try:
    peer.receive_handle("memory")
except ValueError as error:
    peer.send(str(error).encode())
`
    await withPython(program, async (socket) => {
      await socket.send({ bytes: Buffer.from(JSON.stringify({ type: 'posix-fd', content: 'pool', byteLength: 0 })) })
      const { bytes } = await socket.receive({ timeout: 300_000 })
      expect(Buffer.from(bytes).toString()).toContain('a descriptor of memory was expected')
    })
  })
})
