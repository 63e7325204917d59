import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { DescriptorServer, DescriptorSocket } from '@shoal/ffi'
import { AbortedError, DisposedError, TimeoutError } from '@shoal/types'
import { beforeEach, expect, test } from 'vitest'
import { scratchFolder } from '../../../tooling/config/src/scratchFolder.js'

const child = fileURLToPath(new URL('fixtures/descriptorChild.mjs', import.meta.url))
const scratch = scratchFolder()
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(scratch, 'test-'))
})

function openText(text: string): number {
  const path = join(folder, `text-${text.length}`)
  writeFileSync(path, text)
  return openSync(path, 'r')
}

test.each(['file', 'abstract'])('unrelated processes connect at a path (%s)', async (kind) => {
  const path = kind === 'file' ? join(folder, 'server') : `\0shoal-test-${process.pid}-${Math.random()}`
  const server = DescriptorServer.listen(path)
  const other = spawn('node', [child, 'connect', Buffer.from(path).toString('base64')], { stdio: 'inherit' })
  const ended = once(other, 'exit')
  const socket = await server.accept()
  const descriptor = openText('through a path')
  await socket.send({ descriptors: [descriptor] })
  closeSync(descriptor)
  expect(Buffer.from((await socket.receive()).bytes).toString()).toBe('through a path')
  expect(await ended).toEqual([0, null])
  socket.dispose()
  server.dispose()
  if (kind === 'file') expect(existsSync(path)).toBe(false)
})

test('a server whose socket file was deleted can be disposed', () => {
  const server = DescriptorServer.listen(join(folder, 'gone'))
  rmSync(server.path)
  server.dispose()
  expect(server.disposed).toBe(true)
})

test('accept() ends by signal, timeout and dispose', async () => {
  const server = DescriptorServer.listen(join(folder, 'nobody-comes'))
  const timedOut = server.accept({ timeout: 20 })
  await expect(timedOut).rejects.toBeInstanceOf(TimeoutError)
  await expect(timedOut).rejects.toThrow(/^DescriptorServer\.accept did not end within 20 ms/)
  await expect(server.accept({ signal: AbortSignal.timeout(20) })).rejects.toBeInstanceOf(AbortedError)
  await expect(server.accept(5 as never)).rejects.toThrow(/^DescriptorServer\.accept: options must be /)
  const waiting = server.accept()
  server.dispose()
  await expect(waiting).rejects.toBeInstanceOf(DisposedError)
  await expect(server.accept()).rejects.toBeInstanceOf(DisposedError)
})

test('DescriptorServer and DescriptorSocket print one line', () => {
  const server = DescriptorServer.listen(join(folder, 'printed'))
  expect(inspect(server)).toBe(`DescriptorServer { path: '${server.path}', disposed: false }`)
  server.dispose()
  const [left, right] = DescriptorSocket.pair()
  expect(inspect(left)).toBe(`DescriptorSocket { descriptor: ${left.descriptor}, disposed: false }`)
  left.dispose()
  right.dispose()
  expect(inspect(left)).toMatch(/^DescriptorSocket \{ descriptor: \d+, disposed: true \}$/)
})
