import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  AddressRange,
  allocationGranularity,
  DescriptorHandle,
  DescriptorSocket,
  type Device,
  DeviceBuffer,
  DisposedError,
  FabricHandle,
  FeatureNotSupportedError,
  type HandleContent,
  IpcMemory,
  type IpcMemoryHandle,
  ipcEventHandle,
  ipcMemoryHandle,
  MemoryPool,
  openIpcEvent,
  PhysicalMemory,
  receiveHandle,
  type ShareableHandle,
  StatusError,
  sendHandle,
  WindowsHandle,
} from '@shoal/driver'
import type { CaseContext, Suite } from '../../suite.js'
import { Child, type ProcessEnd, RemoteError } from '../../support/child.js'
import { assertSameBits } from '../../support/compare.js'
import { queueDelay } from '../../support/delay.js'
import { assertNothingLeft } from '../../support/leftovers.js'
import { mapAgain, mapNew, someBytes } from '../../support/mapping.js'

const processScript = fileURLToPath(new URL('memoryProcess.js', import.meta.url))
const strangerScript = fileURLToPath(new URL('stranger.js', import.meta.url))

/** A process at the other end of a socket. */
export function startPartner(
  t: CaseContext,
  environment: Readonly<Record<string, string>> = {},
): { readonly child: Child; readonly socket: DescriptorSocket } {
  const [socket, theirs] = DescriptorSocket.pair()
  t.own(socket)
  const child = Child.start(t, processScript, { descriptor: theirs.descriptor, environment })
  theirs.dispose()
  return { child, socket }
}

/** Sends a handle and disposes of it. */
export async function hand(socket: DescriptorSocket, handle: ShareableHandle): Promise<void> {
  await sendHandle(socket, handle)
  if (handle instanceof DescriptorHandle) handle.dispose()
}

async function share(t: CaseContext, options: { readonly access?: 'read'; readonly device?: number } = {}) {
  const byteLength = someBytes(t, t.device)
  const { physical, bytes, mapped } = mapNew(t, t.device, byteLength, { isShared: true })
  const data = t.random.bytes(byteLength)
  bytes.copyFromSync(data)
  const { child, socket } = startPartner(t)
  const ready = child.run('receiveMemory', options)
  await hand(socket, physical.export())
  assert.equal(await ready, byteLength)
  return { physical, bytes, mapped, data, child, socket }
}

function failed(check: (failure: RemoteError['failure']) => boolean): (error: unknown) => boolean {
  return (error) => error instanceof RemoteError && check(error.failure)
}

/** A handle that came through a socket with other facts than it was sent with. */
export async function retold<C extends HandleContent>(
  handle: DescriptorHandle,
  facts: { readonly content: C; readonly byteLength?: number },
): Promise<DescriptorHandle<C>> {
  const [left, right] = DescriptorSocket.pair()
  const text = JSON.stringify({ ...handle.toJSON(), ...facts })
  await left.send({ bytes: Buffer.from(text), descriptors: [handle.descriptor] })
  const arrived = await receiveHandle(right, facts.content)
  left.dispose()
  right.dispose()
  return arrived as DescriptorHandle<C>
}

async function leaves(child: Child): Promise<void> {
  assert.deepEqual(await child.leave(), { code: 0, signal: null } satisfies ProcessEnd)
}

export const sharingSuite: Suite = {
  name: 'driver sharing',
  cases: [
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
        const physical = t.own(PhysicalMemory.import(handle, t.device))
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
        // What it managed to write before is there; nothing else is.
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
        const folder = mkdtempSync(join(tmpdir(), 'shoal-strangers-'))
        t.defer(() => rmSync(folder, { recursive: true, force: true }))
        const seed = String(t.random.integer(1, 1e9))
        const start = (role: string) => {
          const child = spawn(process.execPath, [strangerScript, role, join(folder, 'socket'), seed], {
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
        const again = t.own(PhysicalMemory.import(handle, t.device))
        const twice = t.own(PhysicalMemory.import(handle, t.device))
        assert.deepEqual(again.properties.location, physical.properties.location)
        // It goes on to others only from where it was made.
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
    {
      name: 'a read-only import cannot be written: an error and nothing worse, and the memory stays as it is',
      async run(t) {
        const { bytes, data, child } = await share(t, { access: 'read' })
        assertSameBits((await child.run('read')) as Uint8Array, data, 'read by the child')
        const refused = failed((failure) => failure.code === 'CUDA_ERROR_INVALID_VALUE' && failure.isSticky === false)
        await assert.rejects(child.run('fill', 3), refused)
        await assert.rejects(child.run('write', { start: 5, data: new Uint8Array(100) }), refused)
        assert.equal(await child.run('probe'), 10)
        assertSameBits(bytes.toArraySync(), data, 'the memory')
      },
    },
    {
      name: 'a kernel that writes to a read-only import loses its context, and nobody else’s memory',
      requires: { kernels: true },
      async run(t) {
        const { bytes, data, child } = await share(t, { access: 'read' })
        await assert.rejects(
          child.run('runAxpy', t.kernels),
          failed((failure) => failure.isSticky === true),
        )
        await assert.rejects(
          child.run('probe'),
          failed((failure) => failure.isSticky === true),
        )
        assertSameBits(bytes.toArraySync(), data, 'the memory')
        t.own(DeviceBuffer.zeros(t.device, 'u8', 10))
      },
    },
    {
      name: 'a kernel of another process writes to memory of this one',
      requires: { kernels: true },
      async run(t) {
        const { bytes, child } = await share(t)
        bytes.fillSync(0)
        await child.run('runAxpy', t.kernels)
        assertSameBits(bytes.reinterpret('f32').slice(0, 1000).toArraySync(), new Float32Array(1000).fill(2), 'y')
      },
    },
    {
      name: 'an address where nothing is mapped any more is an error, not a crash',
      async run(t) {
        const { child } = startPartner(t)
        const error = await child.run('fillUnmapped').then(
          () => undefined,
          (reason: unknown) => reason,
        )
        assert.ok(error instanceof RemoteError)
        const { name, code, isSticky } = error.failure
        assert.equal(name, 'StatusError', error.message)
        t.note(`use of an unmapped address: ${code}, ${isSticky === true ? '' : 'not '}sticky`)
      },
    },
    {
      name: 'memory of one device is imported for another',
      requires: { devices: 2 },
      async run(t) {
        if (!(t.devices[1] as Device).canAccessPeer(t.device)) {
          return t.note('the devices cannot reach each other: not tried')
        }
        const { bytes, data, child } = await share(t, { device: 1 })
        assertSameBits((await child.run('read')) as Uint8Array, data, 'read by the other device')
        await child.run('fill', 0x42)
        assertSameBits(bytes.toArraySync(), data.fill(0x42), 'written by the other device')
      },
    },
    {
      name: 'memory on a device that the other process does not see is refused there, and stays',
      requires: { devices: 2 },
      async run(t) {
        const second = t.devices[1] as Device
        const { physical, bytes } = mapNew(t, second, allocationGranularity(second), { isShared: true })
        bytes.fillSync(0x19)
        const pool = t.own(MemoryPool.create(second, { handleTypes: 'posix-fd' }))
        const { child, socket } = startPartner(t, { CUDA_VISIBLE_DEVICES: '0', SHOAL_SIM_DEVICES: '1' })
        const refused = failed(
          ({ name, message }) => name === 'FeatureNotSupportedError' && message.includes(second.uuid),
        )
        let before: unknown
        for (const [command, handle] of [
          // Once more than need be: with the first one the driver opens what it keeps.
          ['receiveMemory', physical.export()],
          ['receiveMemory', physical.export()],
          ['receivePool', pool.export()],
        ] as const) {
          const attempt = child.run(command, {})
          await hand(socket, handle)
          await assert.rejects(attempt, refused)
          before ??= await child.run('disposeAll')
        }
        const buffer = t.own(DeviceBuffer.zeros(second, 'u8', 100))
        await assert.rejects(child.run('openIpc', ipcMemoryHandle(buffer)), refused)
        assert.deepEqual(await child.run('disposeAll'), before)
        assertSameBits(bytes.toArraySync(), new Uint8Array(bytes.length).fill(0x19), 'the memory')
      },
    },
    {
      name: 'handles that are wrong are refused before the driver sees them, and nothing is left',
      async run(t) {
        const unit = allocationGranularity(t.device)
        await assertNothingLeft(t, () => {
          const physical = PhysicalMemory.create(t.device, unit, { handleTypes: 'posix-fd' })
          const handle = physical.export()
          const facts = { content: 'memory', byteLength: unit, deviceUuid: t.device.uuid } as const
          const take = (what: unknown) => () => PhysicalMemory.import(what as ShareableHandle<'memory'>, t.device)
          // What is no handle.
          for (const bad of [undefined, null, 5, {}, handle.descriptor, handle.toJSON()]) {
            assert.throws(take(bad), TypeError)
          }
          const openNull = (change: object): DescriptorHandle<'memory'> =>
            new DescriptorHandle(openSync('/dev/null', 'r'), { ...facts, ...change })
          const refuse = (wrong: DescriptorHandle<'memory'>, check: (error: unknown) => boolean): void => {
            assert.throws(take(wrong), check)
            wrong.dispose()
          }
          // Of something else.
          for (const content of ['pool', 'multicast']) {
            refuse(openNull({ content }), (error) => error instanceof TypeError && /not of memory/.test(error.message))
          }
          assert.throws(() => MemoryPool.import(handle as never, t.device), TypeError)
          // Of a size that it cannot have.
          const odd = unit + 1
          refuse(openNull({ byteLength: odd }), (error) => {
            return error instanceof RangeError && error.message.includes(`${odd}`)
          })
          // Closed, disposed of, a file.
          const closed = physical.export()
          closeSync(closed.descriptor)
          assert.throws(take(closed), { name: 'TypeError', message: new RegExp(`${closed.descriptor} is not open`) })
          // Whoever closed it did so behind the back of its owner, who is told.
          assert.throws(() => closed.dispose(), { code: 'EBADF' })
          const disposed = physical.export()
          disposed.dispose()
          disposed.dispose()
          assert.throws(take(disposed), DisposedError)
          assert.throws(() => disposed.descriptor, DisposedError)
          refuse(new DescriptorHandle(openSync(processScript, 'r'), facts), (error) => {
            return error instanceof TypeError && error.message.includes('memoryProcess')
          })
          refuse(openNull({}), (error) => {
            return error instanceof TypeError || (error instanceof StatusError && !error.isSticky)
          })
          // On a device that this process does not see.
          const deviceUuid = 'GPU-00000000-0000-0000-0000-000000000000'
          refuse(openNull({ deviceUuid }), (error) => {
            return error instanceof FeatureNotSupportedError && error.message.includes(deviceUuid)
          })
          assert.throws(() => PhysicalMemory.import(handle, 0 as unknown as Device), TypeError)
          // Kinds that Linux has not.
          assert.throws(take(new WindowsHandle('win32', 4n, facts)), StatusError)
          const garbage = new FabricHandle(t.random.bytes(64), facts)
          assert.throws(take(garbage), StatusError)
          assert.throws(() => new FabricHandle(new Uint8Array(63), facts), /64 bytes, not 63/)
          // A kind that the memory was not made for.
          assert.throws(() => physical.export('fabric'), StatusError)
          assert.throws(() => physical.export('fd' as 'fabric'), TypeError)
          const closedToAll = PhysicalMemory.create(t.device, unit)
          assert.throws(() => closedToAll.export(), StatusError)
          closedToAll.dispose()
          physical.dispose()
          assert.throws(() => physical.export(), DisposedError)
          handle.dispose()
        })
      },
    },
    {
      name: 'memory that is shorter than its handle says cannot be mapped longer',
      async run(t) {
        const unit = allocationGranularity(t.device)
        const physical = t.own(PhysicalMemory.create(t.device, unit, { handleTypes: 'posix-fd' }))
        const handle = t.own(physical.export())
        const longer = t.own(await retold(handle, { content: 'memory', byteLength: unit * 2 }))
        let imported: PhysicalMemory
        try {
          imported = PhysicalMemory.import(longer, t.device)
        } catch (error) {
          assert.ok(error instanceof RangeError || error instanceof StatusError)
          return
        }
        t.own(imported)
        const range = t.own(AddressRange.reserve(unit * 2))
        assert.throws(() => range.map(imported), StatusError)
        assert.equal(range.mappedBytes, 0)
        t.own(range.map(physical))
      },
    },
    {
      name: 'fabric handles carry memory where the device has them',
      async run(t) {
        const unit = allocationGranularity(t.device)
        if (t.device.attribute('HANDLE_TYPE_FABRIC_SUPPORTED') === 0) {
          assert.throws(() => PhysicalMemory.create(t.device, unit, { handleTypes: 'fabric' }), StatusError)
          return t.note('the device has no fabric handles')
        }
        let physical: PhysicalMemory
        try {
          physical = t.own(PhysicalMemory.create(t.device, unit, { handleTypes: ['fabric', 'posix-fd'] }))
        } catch (error) {
          // The device can, but the system lets only some users.
          assert.ok(error instanceof StatusError && error.code === 'CUDA_ERROR_NOT_PERMITTED', String(error))
          return t.note('this process is not permitted to make fabric handles')
        }
        const bytes = mapAgain(t, t.device, physical)
        bytes.fillSync(0x21)
        const handle = physical.export('fabric')
        assert.equal(handle.bytes.length, 64)
        const { child } = startPartner(t)
        assert.equal(await child.run('importFabric', JSON.parse(JSON.stringify(handle))), unit)
        assertSameBits((await child.run('read')) as Uint8Array, new Uint8Array(unit).fill(0x21), 'read by the child')
      },
    },
    {
      name: 'a pool travels, and so does what is allocated from it',
      async run(t) {
        const pool = t.own(MemoryPool.create(t.device, { handleTypes: 'posix-fd' }))
        const stream = t.own(t.device.createStream())
        const { child, socket } = startPartner(t)
        const ready = child.run('receivePool', {})
        await hand(socket, pool.export())
        await ready
        for (const length of [1, 1001, t.random.integer(1e5, 1e6)]) {
          const buffer = t.own(pool.allocate(stream, 'u8', length))
          const data = t.random.bytes(length)
          buffer.copyFrom(data, { stream })
          await stream.synchronize()
          const pointer = pool.exportPointer(buffer)
          assert.equal(await child.run('openPointer', JSON.parse(JSON.stringify(pointer))), length)
          assertSameBits((await child.run('read')) as Uint8Array, data, 'read by the child')
          await child.run('fill', 0x2a)
          assertSameBits(buffer.toArraySync(), data.fill(0x2a), 'written by the child')
        }
        const small = t.own(pool.allocate(stream, 'u8', 1000))
        await stream.synchronize()
        await assert.rejects(
          child.run('openPointer', { ...pool.exportPointer(small), length: 2 ** 40 }),
          failed((failure) => failure.name === 'RangeError'),
        )
        // Memory comes only from the process that made the pool.
        await assert.rejects(
          child.run('allocateFromPool'),
          failed((failure) => failure.name === 'StatusError'),
        )
        await child.run('disposeAll')
        await leaves(child)
      },
    },
    {
      name: 'pools and pointers that are wrong are refused',
      async run(t) {
        const pool = t.own(MemoryPool.create(t.device, { handleTypes: 'posix-fd' }))
        const closed = t.own(MemoryPool.create(t.device))
        const stream = t.own(t.device.createStream())
        assert.throws(() => closed.export(), StatusError)
        const handle = t.own(pool.export())
        assert.deepEqual(handle.toJSON(), {
          type: 'posix-fd',
          content: 'pool',
          byteLength: 0,
          deviceUuid: t.device.uuid,
        })
        assert.throws(() => PhysicalMemory.import(handle as never, t.device), TypeError)
        const plain = t.own(DeviceBuffer.allocate(t.device, 'u8', 100))
        assert.throws(() => pool.exportPointer(plain), StatusError)
        assert.throws(() => pool.exportPointer({} as never), TypeError)
        const buffer = t.own(pool.allocate(stream, 'u8', 100))
        const pointer = pool.exportPointer(buffer)
        // The driver wants the pool exported first: exportPointer sees to it.
        const fresh = t.own(MemoryPool.create(t.device, { handleTypes: 'posix-fd' }))
        assert.equal(fresh.exportPointer(t.own(fresh.allocate(stream, 'u8', 100))).length, 100)
        // It is this process that made the pool.
        assert.throws(() => pool.importPointer(stream, pointer), StatusError)
        const bad = (change: object) => () => pool.importPointer(stream, { ...pointer, ...change })
        assert.throws(bad({ data: 'AAAA' }), /64 bytes, not 3/)
        assert.throws(bad({ type: 'ipc-memory' }), TypeError)
        assert.throws(bad({ data: Buffer.alloc(64).toString('base64') }), StatusError)
        assert.throws(bad({ length: -1 }), RangeError)
        assert.throws(bad({ dtype: 'u9' }), TypeError)
        assert.throws(() => pool.importPointer({} as never, pointer), TypeError)
        assert.throws(() => pool.importPointer(stream, undefined as never), TypeError)
        await stream.synchronize()
      },
    },
    {
      name: 'IPC memory: a child opens a buffer, and a part of one, by what JSON carries',
      async run(t) {
        const length = t.random.integer(5000, 500_000)
        const data = t.random.bytes(length)
        const buffer = t.own(DeviceBuffer.from(t.device, data))
        const { child } = startPartner(t)
        for (const [start, end] of [
          [0, length],
          [t.random.integer(1, 1000), t.random.integer(2000, length)],
        ] as const) {
          const part = buffer.slice(start, end)
          const handle = JSON.parse(JSON.stringify(ipcMemoryHandle(part)))
          assert.equal(await child.run('openIpc', handle), end - start)
          assertSameBits((await child.run('read')) as Uint8Array, data.subarray(start, end), 'read by the child')
          const value = t.random.integer(0, 255)
          await child.run('fill', value)
          data.fill(value, start, end)
          assertSameBits(buffer.toArraySync(), data, 'written by the child')
          await child.run('disposeAll')
        }
        await leaves(child)
      },
    },
    {
      name: 'IPC memory that is wrong is refused, and nothing is left',
      async run(t) {
        await assertNothingLeft(t, async () => {
          const buffer = DeviceBuffer.zeros(t.device, 'f32', 1000)
          const handle = ipcMemoryHandle(buffer)
          assert.throws(() => IpcMemory.open(t.device, handle), StatusError)
          assert.throws(() => ipcMemoryHandle(buffer.slice(5, 5)), RangeError)
          assert.throws(() => ipcMemoryHandle({} as never), TypeError)
          const bad = (change: object) => () =>
            IpcMemory.open(t.device, { ...handle, ...change } as unknown as IpcMemoryHandle)
          assert.throws(bad({ handle: 'AAAA' }), /3 bytes, not 64/)
          assert.throws(bad({ handle: 5 }), TypeError)
          assert.throws(bad({ type: 'ipc-event' }), TypeError)
          assert.throws(bad({ dtype: 'f31' }), TypeError)
          assert.throws(bad({ length: 0 }), RangeError)
          assert.throws(bad({ byteOffset: -4 }), RangeError)
          assert.throws(bad({ deviceUuid: 'GPU-0' }), FeatureNotSupportedError)
          assert.throws(() => IpcMemory.open(t.device, undefined as never), TypeError)
          const stream = t.device.createStream()
          const ordered = DeviceBuffer.allocateAsync(stream, 'u8', 100)
          await stream.synchronize()
          assert.throws(() => ipcMemoryHandle(ordered), StatusError)
          ordered.dispose()
          await stream.synchronize()
          stream.dispose()
          buffer.dispose()
          assert.throws(() => ipcMemoryHandle(buffer), DisposedError)
        })
        const mapped = mapNew(t, t.device, allocationGranularity(t.device))
        assert.throws(() => ipcMemoryHandle(mapped.bytes), StatusError)
        const second = t.devices[1]
        if (second === undefined) return
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 10))
        assert.throws(() => IpcMemory.open(second, ipcMemoryHandle(buffer)), RangeError)
      },
    },
    {
      name: 'IPC memory longer than what was allocated cannot be opened',
      async run(t) {
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 5000))
        const handle = ipcMemoryHandle(buffer)
        const { child } = startPartner(t)
        for (const change of [{ length: 2 ** 40 }, { byteOffset: 2 ** 40 }]) {
          await assert.rejects(
            child.run('openIpc', { ...handle, ...change }),
            failed((failure) => failure.name === 'RangeError'),
          )
        }
        assert.equal(await child.run('openIpc', handle), 5000)
      },
    },
    {
      name: 'an IPC event of this process is awaited by another',
      requires: { delay: true },
      async run(t) {
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 3000))
        const event = t.own(t.device.createEvent({ interprocess: true }))
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        const { child } = startPartner(t)
        await child.run('openIpc', ipcMemoryHandle(buffer))
        await queueDelay(stream, 300)
        buffer.fill(0x66, { stream })
        stream.record(event)
        const handle = JSON.parse(JSON.stringify(ipcEventHandle(event)))
        assert.equal(await child.run('openEvent', handle), false)
        await child.run('awaitEvent')
        assert.equal(event.query(), true)
        assertSameBits((await child.run('read')) as Uint8Array, new Uint8Array(3000).fill(0x66), 'read by the child')
      },
    },
    {
      name: 'work of this process waits for an IPC event of another',
      requires: { delay: true },
      async run(t) {
        const buffer = t.own(DeviceBuffer.zeros(t.device, 'u8', 3000))
        const event = t.own(t.device.createEvent({ interprocess: true }))
        const { child } = startPartner(t)
        await child.run('openIpc', ipcMemoryHandle(buffer))
        await child.run('openEvent', ipcEventHandle(event))
        await child.run('recordLater', 200)
        const stream = t.own(t.device.createStream({ nonBlocking: true }))
        stream.waitEvent(event)
        assertSameBits(await buffer.toArray({ stream }), new Uint8Array(3000).fill(0x5a), 'after the child’s work')
      },
    },
    {
      name: 'IPC events that are wrong are refused',
      run(t) {
        const plain = t.own(t.device.createEvent())
        assert.throws(() => ipcEventHandle(plain), StatusError)
        assert.throws(() => ipcEventHandle({} as never), TypeError)
        const event = t.own(t.device.createEvent({ interprocess: true }))
        const handle = ipcEventHandle(event)
        assert.throws(() => openIpcEvent(t.device, { ...handle, handle: '' }), RangeError)
        assert.throws(() => openIpcEvent(t.device, { ...handle, type: 'ipc-memory' as 'ipc-event' }), TypeError)
        assert.throws(() => openIpcEvent(t.device, undefined as never), TypeError)
        const garbage = Buffer.from(t.random.bytes(64)).toString('base64')
        assert.throws(() => openIpcEvent(t.device, { ...handle, handle: garbage }), StatusError)
      },
    },
    {
      name: 'what comes through a socket and is no handle is refused, and its descriptors are closed',
      async run(t) {
        await assertNothingLeft(t, async () => {
          const [left, right] = DescriptorSocket.pair()
          const unit = allocationGranularity(t.device)
          const physical = PhysicalMemory.create(t.device, unit, { handleTypes: 'posix-fd' })
          const handle = physical.export()
          const good = JSON.stringify(handle)
          const one = [handle.descriptor]
          const cases: readonly (readonly [string, readonly number[]])[] = [
            ['no JSON', one],
            ['no JSON', [...one, ...one]],
            ['null', one],
            [good, [...one, ...one]],
            [good, []],
            [good.replace('"memory"', '"pool"'), one],
            [good.replace('posix-fd', 'fabric'), one],
            [good.replace(String(unit), '-1'), one],
            [JSON.stringify({ type: 'fabric', content: 'memory', byteLength: unit, handle: 'AAAA' }), []],
          ]
          for (const [text, descriptors] of cases) {
            await left.send({ bytes: Buffer.from(text), descriptors })
            await assert.rejects(receiveHandle(right, 'memory'), (error) => {
              return error instanceof TypeError || error instanceof RangeError
            })
          }
          await sendHandle(left, handle)
          handle.dispose()
          const arrived = (await receiveHandle(right, 'memory')) as DescriptorHandle<'memory'>
          PhysicalMemory.import(arrived, t.device).dispose()
          arrived.dispose()
          await assert.rejects(sendHandle(left, handle), DisposedError)
          await assert.rejects(sendHandle(left, {} as never), TypeError)
          await assert.rejects(receiveHandle(right, 'memory', { timeout: 20 }), { name: 'TimeoutError' })
          left.dispose()
          right.dispose()
          physical.dispose()
        })
      },
    },
  ],
}
