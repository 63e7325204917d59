import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type Program, start as startProgram } from '../../testing/program.js'

const folder = mkdtempSync(join(tmpdir(), 'shoal-shared-memory-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const start = (name: string, ...options: string[]) => startWith({}, name, ...options)

function startWith(environment: NodeJS.ProcessEnv, name: string, ...options: string[]): Program {
  return startProgram(new URL(`../dist/${name}.js`, import.meta.url), options, environment)
}

let sockets = 0
function newPath(): string {
  sockets += 1
  return join(folder, `${sockets}.sock`)
}

test('parent and child share memory over an inherited socket', async () => {
  const { code, output, errors } = await start('parent').end
  expect(output).toMatch(/importer \d+: mapped 4194304 bytes at 0x/)
  expect(output).toMatch(/importer \d+: read, all 1000000 elements are right/)
  expect(output).toMatch(/exporter \d+: read the answer, all 1000000 elements are right/)
  expect(errors).not.toContain('ShoalLeakWarning')
  expect(code).toBe(0)
})

test('parent and child: the parent keeps its memory when the child is killed', async () => {
  const { code, output } = await start('parent', '--kill').end
  expect(output).toMatch(/exporter \d+: the importer is gone without an answer; all 1000000 elements are right still/)
  expect(code).toBe(0)
})

test('unrelated processes: two importers use a path one after the other, and the path is removed at the end', async () => {
  const path = newPath()
  const owner = start('owner', path, '--importers', '2')
  await owner.said(/listening/)
  for (let importer = 0; importer < 2; importer += 1) {
    const { code, output } = await start('client', path).end
    expect(output).toMatch(/read, all 1000000 elements are right\nimporter \d+: wrote the answer/)
    expect(code).toBe(0)
  }
  const { code, output } = await owner.end
  expect(output.match(/read the answer, all 1000000 elements are right/g)).toHaveLength(2)
  expect(code).toBe(0)
  expect(existsSync(path)).toBe(false)
})

test('unrelated processes: a killed importer affects neither the owner nor the next importer', async () => {
  const path = newPath()
  const owner = start('owner', path, '--importers', '2')
  await owner.said(/listening/)
  const victim = start('client', path, '--pause')
  await victim.said(/mapped/)
  victim.child.kill('SIGKILL')
  await owner.said(/the importer is gone without an answer; all 1000000 elements are right still/)
  const { code } = await start('client', path).end
  expect(code).toBe(0)
  expect(await owner.end).toMatchObject({ code: 0 })
})

test('unrelated processes: memory outlives a killed owner', async () => {
  const path = newPath()
  const owner = start('owner', path)
  await owner.said(/listening/)
  const client = start('client', path, '--stay')
  await owner.said(/read the answer/)
  owner.child.kill('SIGKILL')
  const { code, output } = await client.end
  expect(output).toMatch(/importer \d+: the owner is gone, all 1000000 elements are right still/)
  expect(code).toBe(0)
})

test('the owner stops on request even if an importer has not answered', async () => {
  const path = newPath()
  const owner = start('owner', path)
  await owner.said(/listening/)
  const client = start('client', path, '--pause')
  await client.said(/mapped/)
  owner.child.kill('SIGTERM')
  const { code, output } = await owner.end
  expect(output).toContain('asked to stop')
  expect(code).toBe(0)
  expect(existsSync(path)).toBe(false)
  client.child.kill('SIGKILL')
  await client.end
})

test("Python reads memory written by Node, and Node reads Python's answer", async (context) => {
  const version = spawnSync('python3', ['-c', 'import sys; print(sys.version_info >= (3, 9))'], { encoding: 'utf8' })
  if (version.stdout?.trim() !== 'True')
    return context.skip('no Python 3.9 or newer here (socket.recv_fds came with it)')
  const { code, output } = await start('withPython').end
  expect(output).toMatch(/importer \d+ \(Python\): read, all 1000000 elements are right/)
  expect(output).toMatch(/exporter \d+: read the answer, all 1000000 elements are right/)
  expect(code).toBe(0)
})

test('Node and Python: a missing interpreter and one that exits at once are reported', async () => {
  const missing = await startWith({ PYTHON: '/nowhere/python3' }, 'withPython').end
  expect(missing.errors).toContain('withPython: spawn /nowhere/python3 ENOENT')
  expect(missing.code).toBe(2)
  const useless = await startWith({ PYTHON: 'true' }, 'withPython').end
  expect(useless.errors).toContain('withPython: Python ended before it connected')
  expect(useless.code).toBe(2)
})

test.each([
  [
    'client',
    ['/nowhere/at-all.sock'],
    "client: DescriptorSocket.connect: the system refused path '/nowhere/at-all.sock': connect: ENOENT",
  ],
  [
    'owner',
    ['/nowhere/at-all.sock'],
    "owner: DescriptorServer.listen: the system refused path '/nowhere/at-all.sock': bind: ENOENT",
  ],
  ['client', [], 'client: usage: '],
  ['owner', ['a', 'b'], 'owner: usage: '],
  ['owner', ['a', '--importers', 'none'], 'owner: usage: '],
])('failures are reported in one line: %s %j', async (name, options, line) => {
  const { code, errors } = await start(name, ...options).end
  expect(errors).toContain(line)
  expect(errors).not.toContain('    at ')
  expect(code).toBe(2)
})
