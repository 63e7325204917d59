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

// Checks the compiler's errors for correct and wrong uses. This code does not run.

declare const communicator: Communicator
declare const memory: MemoryLike
declare const stream: StreamLike
declare const window: Window
declare const id: UniqueId
declare const maybe: number | undefined
declare const signal: AbortSignal | undefined

export async function rightUses(): Promise<void> {
  // Optional options may be undefined.
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
  // @ts-expect-error Host memory is not device memory.
  communicator.allReduce(new Float32Array(4), memory, { stream })
  // @ts-expect-error `send` may be null only for operations with a root.
  communicator.allGather(null, memory, { stream })
  // @ts-expect-error A broadcast requires a root.
  communicator.broadcast(memory, memory, { stream })
  // @ts-expect-error A broadcast requires the buffer that it writes to.
  communicator.broadcast(memory, null, { stream, root: 0 })
  // @ts-expect-error The peer is missing.
  communicator.send(memory, { stream })
  // @ts-expect-error A count is a number.
  communicator.send(memory, { stream, peer: 1, count: 4n })
  // @ts-expect-error This type does not exist.
  communicator.send(memory, { stream, peer: 1, dtype: 'f33' })
  // @ts-expect-error The window is missing.
  communicator.putSignal(memory, { stream, peer: 1 })
  // @ts-expect-error This team does not exist.
  communicator.team('everybody')
  // @ts-expect-error The color is missing.
  await communicator.split({})
  // @ts-expect-error The id is missing.
  await Communicator.initRank({ device: 0, rank: 0, worldSize: 2 })
  // @ts-expect-error UniqueId.fromBase64 converts text to an id.
  await Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id: 'AAAA' })
  // @ts-expect-error NCCL has no such field.
  await Communicator.initRank({ device: 0, rank: 0, worldSize: 2, id, config: { blockng: false } })
  // @ts-expect-error The type is wrong.
  const config: CommunicatorConfig = { minCTAs: '4' }
  // @ts-expect-error A controller is not a signal.
  await communicator.ready({ signal: new AbortController() })
  // @ts-expect-error Static functions create it.
  new UniqueId(new Uint8Array(128))
  // @ts-expect-error initAll and initRank create a communicator.
  new Communicator()
  // @ts-expect-error The size is missing.
  await NcclMemory.allocate(0)
  // @ts-expect-error The property is read-only.
  communicator.rank = 1
  expect(config).toBeDefined()
}

test('correct uses compile, and wrong uses do not (checked by tsc)', () => {
  expect([rightUses, wrongUses].every((uses) => typeof uses === 'function')).toBe(true)
})
