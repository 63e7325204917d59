import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { withContext } from '@shoal/cuda-sys'
import { type CUdeviceptr, cuMemGetAddressRange } from '@shoal/cuda-sys/driver'
import { Communicator, NcclMemory } from '@shoal/nccl'
import { nccl } from '@shoal/nccl-sys'
import { DisposedError, memoryProtocol } from '@shoal/types'
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { errorOf, startSoftwareDevice } from './fixtures/device.js'

// Tests calls whose caller no longer waits, and which wait for a rank that never joins: their effect on other calls.

beforeAll(startSoftwareDevice)

beforeEach(({ skip }) => {
  if (!nccl.has('ncclCommWindowRegister')) skip('this libnccl has no ncclCommWindowRegister')
})

interface Ended {
  readonly status: number | null
  readonly stdout: string
}

/** Runs a separate process. If it does not end, it is killed and has no status. */
function run(program: string): Ended {
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
    env: { ...process.env, SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2', NODE_OPTIONS: '' },
  })
  return { status, stdout }
}

describe('memory under a window whose registration was aborted while it waits forever for a rank', () => {
  test.each(['free', 'dispose'] as const)(
    '%s does not wait for the registration, and the memory is freed when that call returns',
    { timeout: 120_000 },
    async (way) => {
      const [first, second] = (await Communicator.initAll([0, 1])) as [Communicator, Communicator]
      const [memory, theirs] = await Promise.all([NcclMemory.allocate(0, 4096), NcclMemory.allocate(1, 4096)])
      const { address } = memory
      const { context } = memory[memoryProtocol]
      const out = new BigUint64Array(2)
      const isThere = (): boolean =>
        withContext(context as bigint, () => cuMemGetAddressRange(out, out.subarray(1), address as CUdeviceptr)) === 0
      const registering = first.registerWindow(memory, { timeout: 20 })
      await expect(registering).rejects.toMatchObject({ operation: 'registerWindow', reason: 'timeout' })
      await memory[way]()
      await memory.free()
      expect([memory.disposed, isThere()]).toEqual([true, true])
      expect(errorOf(() => memory.address)).toBeInstanceOf(DisposedError)
      // The other rank's result does not matter, because the first rank is being aborted.
      await second.registerWindow(theirs).catch(() => undefined)
      await vi.waitUntil(() => !isThere(), { timeout: 60_000, interval: 5 })
      await second.abort()
      await theirs.free()
    },
  )

  test('lives while another registration covers it', { timeout: 120_000 }, async () => {
    const [first, second] = (await Communicator.initAll([0, 1])) as [Communicator, Communicator]
    const [alone] = (await Communicator.initAll([0])) as [Communicator]
    const [memory, theirs] = await Promise.all([NcclMemory.allocate(0, 4096), NcclMemory.allocate(1, 4096)])
    await expect(first.registerWindow(memory, { timeout: 20 })).rejects.toMatchObject({ reason: 'timeout' })
    const registration = alone.register(memory)
    await memory.free()
    expect(memory.disposed).toBe(true)
    registration.dispose()
    await second.registerWindow(theirs).catch(() => undefined)
    await Promise.all([alone.destroy(), second.abort()])
    await theirs.free()
  })

  test('does not keep the process alive', { timeout: 120_000 }, () => {
    const program = `
      import { Communicator, NcclMemory } from '@shoal/nccl'
      const [first] = await Communicator.initAll([0, 1])
      const memory = await NcclMemory.allocate(0, 4096)
      await first.registerWindow(memory, { timeout: 20 }).catch(({ reason }) => console.log(reason))
      await memory.free()
      console.log('freed')`
    expect(run(program)).toEqual({ status: 0, stdout: 'timeout\nfreed\n' })
  })
})

describe('a group of several communicators rejected because one of them ends', () => {
  test.each(['destroy', 'finalize'])(
    '%s of the others keeps the process alive until it can run',
    {
      timeout: 120_000,
    },
    (way) => {
      // The limit that ends the call does not keep the process alive.
      const program = `
      import { Communicator, groupOffThread, NcclMemory } from '@shoal/nccl'
      const [first, second] = await Communicator.initAll([0, 1])
      const [other] = await Communicator.initAll([0, 1])
      const memory = await Promise.all([0, 1].map((device) => NcclMemory.allocate(device, 4096)))
      const say = ({ operation, reason }) => console.log(operation, reason)
      const call = first.registerWindow(memory[0], { timeout: 20 }).catch(say)
      const sum = (one) => one.allReduce(memory[0], memory[0], { dtype: 'f32', stream: null })
      const group = groupOffThread(() => [first, other].map(sum)).catch(say)
      await call
      await group
      setTimeout(() => second.registerWindow(memory[1]).catch(() => undefined), 200).unref()
      await other.${way}()
      console.log('done')`
      expect(run(program)).toEqual({ status: 0, stdout: 'registerWindow timeout\ngroupOffThread timeout\ndone\n' })
    },
  )
})
