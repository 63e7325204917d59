import { Communicator, group, groupOffThread } from '@shoal/nccl'
import { ShoalError } from '@shoal/types'
import { beforeAll, expect, test } from 'vitest'
import { startSoftwareDevice, TestMemory, TestStream } from './fixtures/device.js'

// Random lives of communicators: every call, in any order and also during other calls, ends with its result or a typed
// error.

beforeAll(startSoftwareDevice)

/** Returns the same numbers for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return (state >> 8) % below
  }
}

const own = new Error('of the program')

function isTyped(error: unknown): boolean {
  return error instanceof ShoalError || error instanceof TypeError || error === own
}

test.each([
  ['blocking', 1],
  ['not blocking', 2],
])('random lifecycles of communicators: %s', { timeout: 60_000 }, async (kind, seed) => {
  const pick = random(seed)
  const untyped: unknown[] = []
  const leaks: string[] = []
  const onWarning = (warning: Error): void => {
    if (warning.name === 'ShoalLeakWarning') leaks.push(warning.message)
  }
  process.on('warning', onWarning)
  const streams = [0, 1].map((device) => new TestStream(device))
  const buffers = [0, 1].map((device) => TestMemory.zeros(device, 'f32', 16))
  const config = kind === 'blocking' ? {} : { config: { blocking: false } }
  for (let life = 0; life < 200; life += 1) {
    const ranks = await Communicator.initAll([0, 1], config)
    const parts: Communicator[] = []
    const underWay: Promise<unknown>[] = []
    const now = (call: () => unknown): void => {
      try {
        call()
      } catch (error) {
        if (!isTyped(error)) untyped.push(error)
      }
    }
    const later = (call: (communicator: Communicator, rank: number) => Promise<unknown>): void => {
      for (const [rank, communicator] of ranks.entries()) {
        const end = call(communicator, rank).catch((error: unknown) => {
          if (!isTyped(error)) untyped.push(error)
        })
        underWay.push(end)
      }
    }
    const sums = (): void => {
      for (const [rank, communicator] of ranks.entries()) {
        communicator.allReduce(buffers[rank]!, buffers[rank]!, { stream: streams[rank]! })
      }
    }
    const wait = { timeout: pick(2) === 0 ? 20 : 3_000 }
    const actions = [
      () => now(() => group(sums)),
      () =>
        now(() =>
          group(() => {
            sums()
            throw own
          }),
        ),
      () =>
        underWay.push(
          groupOffThread(sums, wait).catch((error: unknown) => void (isTyped(error) || untyped.push(error))),
        ),
      () => later((communicator, rank) => communicator.synchronize(streams[rank]!, wait)),
      () =>
        later(async (communicator) => {
          const part = await communicator.split({ color: 0, ...wait })
          if (part !== undefined) parts.push(part)
        }),
      () => later((communicator) => communicator.finalize(wait)),
      () => later((communicator) => communicator.destroy(wait)),
      () => later((communicator) => communicator.revoke(wait)),
      () =>
        underWay.push(ranks[pick(2)]!.abort().catch((error: unknown) => void (isTyped(error) || untyped.push(error)))),
      () => now(() => ranks[pick(2)]!.register(buffers[pick(2)]!)),
      () => now(() => ranks[pick(2)]!.createPreMulSum(2, { dtype: 'f32' })),
    ]
    const steps = 2 + pick(8)
    for (let step = 0; step < steps; step += 1) {
      actions[pick(actions.length)]!()
      if (pick(3) > 0) await new Promise((resolve) => setTimeout(resolve, pick(4)))
    }
    if (pick(2) === 0) await Promise.all(underWay)
    await Promise.allSettled(ranks.map((communicator) => communicator.abort()))
    await Promise.all(underWay)
    await Promise.allSettled(parts.map((communicator) => communicator.abort()))
  }
  for (const thing of [...streams, ...buffers]) thing.dispose()
  process.off('warning', onWarning)
  expect(untyped).toEqual([])
  expect(leaks).toEqual([])
})
