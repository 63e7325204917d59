import assert from 'node:assert/strict'
import {
  DeviceBuffer,
  MemoryPool,
  PinnedBuffer,
  type PointerAttribute,
  pointerAttribute,
  pointerAttributes,
  pointerInfo,
  StatusError,
  setPointerAttribute,
} from '@shoal/driver'
import type { CaseContext, Suite } from '../../suite.js'
import { mapNew, someBytes } from '../../support/mapping.js'

/** Every attribute that any memory can be queried for. The tokens need a driver of a network adapter. */
const all = [
  'CONTEXT',
  'MEMORY_TYPE',
  'DEVICE_POINTER',
  'SYNC_MEMOPS',
  'BUFFER_ID',
  'IS_MANAGED',
  'DEVICE_ORDINAL',
  'IS_LEGACY_CUDA_IPC_CAPABLE',
  'RANGE_START_ADDR',
  'RANGE_SIZE',
  'MAPPED',
  'ALLOWED_HANDLE_TYPES',
  'IS_GPU_DIRECT_RDMA_CAPABLE',
  'ACCESS_FLAGS',
  'MEMPOOL_HANDLE',
  'MAPPING_SIZE',
  'MAPPING_BASE_ADDR',
  'MEMORY_BLOCK_ID',
] as const satisfies readonly PointerAttribute[]

function describe(t: CaseContext, address: bigint) {
  const several = pointerAttributes(t.device, address, all)
  for (const name of all) {
    const alone = pointerAttribute(t.device, address, name)
    // Only a single query distinguishes an attribute that does not apply from one that is zero.
    if (alone !== undefined) assert.deepEqual(alone, several[name], name)
  }
  return several
}

export const pointerSuite: Suite = {
  name: 'driver pointer',
  cases: [
    {
      name: 'device memory, at its start and inside',
      run(t) {
        const buffer = t.own(DeviceBuffer.allocate(t.device, 'u8', t.random.integer(1000, 1_000_000)))
        const inside = buffer.address + BigInt(t.random.integer(1, buffer.length - 1))
        for (const address of [buffer.address, inside]) {
          const found = describe(t, address)
          assert.equal(found.MEMORY_TYPE, 'device')
          assert.equal(found.CONTEXT, t.device.primaryContext.handle)
          assert.equal(found.DEVICE_POINTER, address)
          assert.equal(found.DEVICE_ORDINAL, t.device.ordinal)
          assert.equal(found.IS_MANAGED, false)
          assert.equal(found.RANGE_START_ADDR, buffer.address)
          assert.ok(found.RANGE_SIZE >= buffer.length)
          assert.equal(found.MAPPED, true)
          assert.equal(found.ACCESS_FLAGS, 'readWrite')
          assert.equal(found.MEMPOOL_HANDLE, 0n)
          assert.equal(found.IS_LEGACY_CUDA_IPC_CAPABLE, true)
        }
        assert.equal(pointerAttribute(t.device, buffer.address, 'HOST_POINTER'), undefined)
        assert.equal(pointerAttributes(t.device, buffer.address, ['HOST_POINTER']).HOST_POINTER, 0n)
        const other = t.own(DeviceBuffer.allocate(t.device, 'u8', 1000))
        const id = pointerAttribute(t.device, buffer.address, 'BUFFER_ID')
        assert.notEqual(id, pointerAttribute(t.device, other.address, 'BUFFER_ID'))
      },
    },
    {
      name: 'page-locked memory of the host',
      run(t) {
        const pinned = t.own(PinnedBuffer.allocate(t.device, 'u8', 1000))
        const found = describe(t, pinned.address)
        assert.equal(found.MEMORY_TYPE, 'host')
        assert.equal(pointerAttribute(t.device, pinned.address, 'HOST_POINTER'), pinned.address)
        assert.equal(pointerInfo(t.device, pinned.address).type, 'host')
      },
    },
    {
      name: 'memory of a pool names the pool',
      async run(t) {
        const stream = t.own(t.device.createStream())
        const pool = t.own(MemoryPool.create(t.device, { handleTypes: 'posix-fd' }))
        const buffer = t.own(pool.allocate(stream, 'u8', 1000))
        await stream.synchronize()
        const found = describe(t, buffer.address)
        assert.equal(found.MEMORY_TYPE, 'device')
        assert.equal(found.MEMPOOL_HANDLE, pool.handle)
        assert.deepEqual(found.ALLOWED_HANDLE_TYPES, ['posix-fd'])
        assert.equal(found.IS_LEGACY_CUDA_IPC_CAPABLE, false)
        assert.ok(found.MAPPING_SIZE >= 1000)
        assert.ok(found.MAPPING_BASE_ADDR <= buffer.address)
      },
    },
    {
      name: 'mapped memory tells its mapping, its access and how it may leave',
      run(t) {
        const byteLength = someBytes(t, t.device)
        const { mapped, physical } = mapNew(t, t.device, byteLength, { isShared: true })
        const found = describe(t, mapped.address + 5n)
        assert.equal(found.MEMORY_TYPE, 'device')
        assert.equal(found.CONTEXT, 0n)
        assert.equal(found.DEVICE_ORDINAL, t.device.ordinal)
        assert.equal(found.RANGE_START_ADDR, mapped.address)
        assert.equal(found.RANGE_SIZE, byteLength)
        assert.deepEqual(found.ALLOWED_HANDLE_TYPES, ['posix-fd'])
        assert.equal(found.IS_LEGACY_CUDA_IPC_CAPABLE, false)
        assert.equal(found.ACCESS_FLAGS, 'readWrite')
        mapped.setAccess(t.device, 'read')
        assert.equal(pointerAttribute(t.device, mapped.address, 'ACCESS_FLAGS'), 'read')
        const { address } = mapped
        mapped.disposeSync()
        assert.equal(pointerInfo(t.device, address).type, 'unregistered')
        assert.equal(physical.byteLength, byteLength)
      },
    },
    {
      name: 'an address that CUDA does not know is told as such',
      run(t) {
        for (const address of [0n, 4096n, 0xdead_beef_000n]) {
          for (const name of ['MEMORY_TYPE', 'CONTEXT', 'RANGE_SIZE'] as const) {
            assert.equal(pointerAttribute(t.device, address, name), undefined)
          }
          const found = pointerAttributes(t.device, address, ['MEMORY_TYPE', 'DEVICE_ORDINAL', 'RANGE_SIZE', 'MAPPED'])
          assert.deepEqual(found, { MEMORY_TYPE: 'unknown', DEVICE_ORDINAL: -2, RANGE_SIZE: 0, MAPPED: false })
        }
      },
    },
    {
      name: 'synchronous operations are made so in every case where that is asked for',
      run(t) {
        const buffer = t.own(DeviceBuffer.allocate(t.device, 'u8', 1000))
        t.note(`SYNC_MEMOPS is ${pointerAttribute(t.device, buffer.address, 'SYNC_MEMOPS')} at first`)
        for (const value of [true, false, true]) {
          setPointerAttribute(t.device, buffer.address, 'SYNC_MEMOPS', value)
          assert.equal(pointerAttribute(t.device, buffer.address, 'SYNC_MEMOPS'), value)
        }
        assert.throws(() => setPointerAttribute(t.device, 0n, 'SYNC_MEMOPS', true), StatusError)
        assert.throws(() => setPointerAttribute(t.device, buffer.address, 'CONTEXT' as 'SYNC_MEMOPS', true), TypeError)
        assert.throws(() => setPointerAttribute(t.device, buffer.address, 'SYNC_MEMOPS', 1 as never), TypeError)
      },
    },
    {
      name: 'wrong names and addresses are refused',
      run(t) {
        const bad = 'SIZE' as 'RANGE_SIZE'
        assert.throws(() => pointerAttribute(t.device, 0n, bad), { name: 'TypeError', message: /'SIZE'/ })
        assert.throws(() => pointerAttributes(t.device, 0n, [bad]), TypeError)
        assert.throws(() => pointerAttributes(t.device, 0n, 'CONTEXT' as never), TypeError)
        assert.throws(() => pointerAttribute(t.device, 5 as never, 'CONTEXT'), TypeError)
        assert.throws(() => pointerAttribute(t.device, -1n, 'CONTEXT'), RangeError)
        assert.throws(() => pointerAttribute(undefined as never, 0n, 'CONTEXT'), TypeError)
        assert.deepEqual(pointerAttributes(t.device, 0n, []), {})
        assert.deepEqual(Object.keys(pointerAttributes(t.device, 0n, ['MAPPED', 'MAPPED'])), ['MAPPED'])
      },
    },
  ],
}
