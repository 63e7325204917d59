import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { allocationGranularity, type DescriptorHandle, PhysicalMemory, receiveHandle, StatusError } from '@shoal/driver'
import type { ConformanceCase } from '../../../suite.js'
import { assertSameBits } from '../../../support/compare.js'
import { assertNothingLeft } from '../../../support/leftovers.js'
import { mapAgain, mapNew, someBytes } from '../../../support/mapping.js'
import { hand, leaves, share, startPartner } from './partner.js'

const unrelatedScript = fileURLToPath(new URL('unrelatedProcess.js', import.meta.url))

/** Memory that another process maps. */
export const exchangeCases: readonly ConformanceCase[] = [
  {
    name: 'a child process maps memory of its parent; each sees what the other writes',
    async run(t) {
      const { bytes, data, child } = await share(t)
      assertSameBits((await child.run('read')) as Uint8Array, data, 'read by the child')
      const patch = t.random.bytes(t.random.integer(1, 9999))
      const start = t.random.integer(0, data.length - patch.length)
      await child.run('write', { start, data: patch })
      data.set(patch, start)
      assertSameBits(bytes.toArraySync(), data, 'written by the child')
      bytes.slice(1, 1001).fillSync(0x77)
      const part = (await child.run('readPart', { start: 0, end: 1002 })) as Uint8Array
      assertSameBits(part, bytes.slice(0, 1002).toArraySync(), 'written by the parent')
      await child.run('disposeAll')
      await leaves(child)
    },
  },
  {
    name: 'a parent maps memory of its child, which goes on when the child is killed',
    async run(t) {
      const { child, socket } = startPartner(t)
      const made = child.run('sendMemory', { granules: 3, value: 0x3c })
      const handle = (await receiveHandle(socket, 'memory')) as DescriptorHandle<'memory'>
      assert.equal(await made, handle.byteLength)
      assert.equal(handle.deviceUuid, t.device.uuid)
      const physical = t.own(PhysicalMemory.import(t.device, handle))
      handle.dispose()
      const bytes = mapAgain(t, t.device, physical)
      assertSameBits(bytes.toArraySync(), new Uint8Array(bytes.length).fill(0x3c), 'made by the child')
      assert.equal((await child.kill()).signal, 'SIGKILL')
      assertSameBits(bytes.toArraySync(), new Uint8Array(bytes.length).fill(0x3c), 'after its maker was killed')
      const data = t.random.bytes(bytes.length)
      bytes.copyFromSync(data)
      assertSameBits(bytes.toArraySync(), data, 'written afterwards')
      await assert.rejects(receiveHandle(socket, 'memory'), { code: 'ECONNRESET' })
    },
  },
  {
    name: 'a process killed in the middle of its work leaves the memory of the other intact',
    async run(t) {
      const { bytes, data, child, physical } = await share(t)
      await child.run('readPart', { start: 0, end: 1 })
      await child.run('keepWriting', 0x11)
      assert.equal((await child.kill()).signal, 'SIGKILL')
      // Every byte is either the other process's or unchanged.
      const now = bytes.toArraySync()
      assert.ok(
        now.every((byte, index) => byte === 0x11 || byte === data[index]),
        'a byte that nobody wrote',
      )
      bytes.copyFromSync(data)
      assertSameBits(mapAgain(t, t.device, physical).toArraySync(), data, 'the memory works')
    },
  },
  {
    name: 'two processes that know nothing but a path share memory',
    timeout: 90_000,
    async run(t) {
      const folder = mkdtempSync(join(tmpdir(), 'shoal-unrelated-'))
      t.defer(() => rmSync(folder, { recursive: true, force: true }))
      const seed = String(t.random.integer(1, 1e9))
      const start = (role: string) => {
        const child = spawn(process.execPath, [unrelatedScript, role, join(folder, 'socket'), seed], {
          stdio: ['ignore', 'pipe', 'pipe'],
        })
        t.defer(() => void child.kill('SIGKILL'))
        let errors = ''
        child.stderr.setEncoding('utf8').on('data', (text: string) => {
          errors += text
        })
        const end = new Promise<[number | null, string]>((resolve) =>
          child.once('close', (code) => resolve([code, errors])),
        )
        const firstOutput = new Promise((resolve) => child.stdout.once('data', resolve))
        return { end, firstOutput }
      }
      const server = start('serve')
      await Promise.race([server.firstOutput, server.end])
      const client = start('connect')
      for (const { end } of [client, server]) {
        const [code, errors] = await end
        assert.equal(code, 0, errors)
      }
    },
  },
  {
    name: 'sharing leaves no descriptor and no memory, here or there',
    timeout: 120_000,
    async run(t) {
      const there: unknown[] = []
      const { child, socket } = startPartner(t)
      await assertNothingLeft(t, async () => {
        const byteLength = allocationGranularity(t.device) * 2
        const physical = PhysicalMemory.create(t.device, byteLength, { handleTypes: 'posix-fd' })
        for (let round = 0; round < 3; round += 1) {
          const ready = child.run('receiveMemory', {})
          await hand(socket, physical.export())
          await ready
          await child.run('fill', round)
        }
        physical.dispose()
        there.push(await child.run('disposeAll'))
      })
      assert.deepEqual(there[1], there[0])
      await leaves(child)
    },
  },
  {
    name: 'memory is imported in the process that exported it, too',
    run(t) {
      const byteLength = someBytes(t, t.device)
      const { physical, bytes } = mapNew(t, t.device, byteLength, { isShared: true })
      const handle = t.own(physical.export())
      assert.equal(handle.type, 'posix-fd')
      assert.deepEqual(JSON.parse(JSON.stringify(handle)), {
        type: 'posix-fd',
        content: 'memory',
        byteLength,
        deviceUuid: t.device.uuid,
      })
      const again = t.own(PhysicalMemory.import(t.device, handle))
      const twice = t.own(PhysicalMemory.import(t.device, handle))
      assert.deepEqual(again.properties.location, physical.properties.location)
      // Only the process that created the memory can export it.
      assert.deepEqual(again.properties.handleTypes, [])
      assert.throws(() => again.export(), StatusError)
      const other = mapAgain(t, t.device, again)
      const data = t.random.bytes(byteLength)
      bytes.copyFromSync(data)
      assertSameBits(other.toArraySync(), data, 'the import')
      physical.dispose()
      again.dispose()
      assertSameBits(mapAgain(t, t.device, twice).toArraySync(), data, 'after the original is gone')
    },
  },
]
