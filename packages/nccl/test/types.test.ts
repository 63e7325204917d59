import {
  type AbortReason,
  Communicator,
  type CommunicatorConfig,
  type CommunicatorProperties,
  type GroupEstimate,
  group,
  groupOffThread,
  NcclMemory,
  NcclParameter,
  type PreMulSum,
  simulateGroup,
  type Team,
  UniqueId,
  type Window,
} from '@shoal/nccl'
import type { MemoryLike, StreamLike } from '@shoal/types'
import { expect, expectTypeOf, test } from 'vitest'

// What the compiler says of right and wrong uses. Nothing here runs.

declare const communicator: Communicator
declare const memory: MemoryLike
declare const stream: StreamLike
declare const window: Window
declare const id: UniqueId
declare const maybe: number | undefined
declare const signal: AbortSignal | undefined

export async function rightUses(): Promise<void> {
  // What may be left out may be undefined as well.
  communicator.allReduce(memory, memory, { stream, count: maybe, dtype: undefined, op: undefined })
  communicator.allReduce(memory, memory, { stream: null, op: 'avg' })
  communicator.broadcast(null, memory, { stream: 0n, root: 0 })
  communicator.reduce(memory, null, { stream, root: 1, op: 'max' })
  communicator.putSignal(memory, { stream, peer: 1, window, offset: maybe, signal: maybe, context: maybe })
  communicator.waitSignal([{ peer: 0, count: maybe }], { stream })
  communicator.waitSignal({ peer: 0 }, { stream: null })
  await communicator.synchronize(stream, { signal, timeout: maybe })
  await communicator.registerWindow(memory, { symmetric: undefined, signal, timeout: maybe })
  const kernels = await communicator.createDeviceCommunicator({
    barrierCount: maybe,
    ginConnectionType: 'full',
    signal,
  })
  expectTypeOf(kernels.bytes()).toEqualTypeOf<Uint8Array<ArrayBuffer>>()
  expectTypeOf(await Communicator.initAll([0, 1])).toEqualTypeOf<Communicator[]>()
  expectTypeOf(await communicator.split({ color: null })).toEqualTypeOf<Communicator | undefined>()
  expectTypeOf(await communicator.shrink({ exclude: [1] })).toEqualTypeOf<Communicator>()
  expectTypeOf(communicator.properties()).toEqualTypeOf<CommunicatorProperties>()
  expectTypeOf(communicator.team('lsa')).toEqualTypeOf<Team>()
  expectTypeOf(communicator.createPreMulSum(2)).toEqualTypeOf<PreMulSum>()
  expectTypeOf(group(() => 5)).toEqualTypeOf<number>()
  expectTypeOf(await groupOffThread(() => 'text')).toEqualTypeOf<string>()
  expectTypeOf(simulateGroup(() => undefined)).toEqualTypeOf<GroupEstimate>()
  expectTypeOf(NcclParameter.bind('NCCL_DEBUG').readInteger('i64')).toEqualTypeOf<bigint>()
  expectTypeOf(NcclParameter.bind('NCCL_DEBUG').readInteger('u8')).toEqualTypeOf<number>()
  expectTypeOf<AbortReason>().toExtend<string>()
}

export async function wrongUses(): Promise<void> {
  // @ts-expect-error The mean is called 'avg'.
  communicator.allReduce(memory, memory, { stream, op: 'mean' })
  // @ts-expect-error Memory of the host is no memory of a device.
  communicator.allReduce(new Float32Array(4), memory, { stream })
  // @ts-expect-error Only the root's `send` may be left out, and not that of all ranks.
  communicator.allGather(null, memory, { stream })
  // @ts-expect-error A broadcast has a root.
  communicator.broadcast(memory, memory, { stream })
  // @ts-expect-error Of the two buffers a broadcast needs the one it writes to.
  communicator.broadcast(memory, null, { stream, root: 0 })
  // @ts-expect-error Who is on the other side?
  communicator.send(memory, { stream })
  // @ts-expect-error A count is a number.
  communicator.send(memory, { stream, peer: 1, count: 4n })
  // @ts-expect-error There is no such type.
  communicator.send(memory, { stream, peer: 1, dtype: 'f33' })
  // @ts-expect-error A put goes into a window.
  communicator.putSignal(memory, { stream, peer: 1 })
  // @ts-expect-error There is no such team.
  communicator.team('everybody')
  // @ts-expect-error A color, or null for none.
  await communicator.split({})
  // @ts-expect-error A rank of its own communicator needs an id.
  await Communicator.initRank({ device: 0, rank: 0, worldSize: 2 })
  // @ts-expect-error Text is made an id by UniqueId.fromBase64.
  await Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id: 'AAAA' })
  // @ts-expect-error NCCL has no such field.
  await Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id, config: { blockng: false } })
  // @ts-expect-error Of the right type.
  const config: CommunicatorConfig = { minCTAs: '4' }
  // @ts-expect-error The signal itself, not its controller.
  await communicator.ready({ signal: new AbortController() })
  // @ts-expect-error It is made by its static functions.
  new UniqueId(new Uint8Array(128))
  // @ts-expect-error A communicator is made by initAll and initRank.
  new Communicator()
  // @ts-expect-error How much memory?
  await NcclMemory.allocate(0)
  // @ts-expect-error What is there cannot be set.
  communicator.rank = 1
  expect(config).toBeDefined()
}

test('correct uses compile, and wrong uses do not (checked by tsc)', () => {
  expect([rightUses, wrongUses].every((uses) => typeof uses === 'function')).toBe(true)
})
