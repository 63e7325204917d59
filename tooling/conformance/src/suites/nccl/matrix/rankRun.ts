import { type Device, DeviceBuffer, type Stream } from '@shoal/driver'
import type { Communicator, PreMulSum, Window } from '@shoal/nccl'
import { type DType, dtypeInfo, type TypedArrayOf } from '@shoal/types'
import { difference, type Expected } from '../../../support/reduction/reference.js'
import { bytesOf, scalarOf } from '../../../support/reduction/values.js'
import { isReduction, type Trial } from './trial.js'
import type { TrialValues } from './trialValues.js'

/** One rank with the objects that it needs. */
export interface Place {
  readonly communicator: Communicator
  readonly device: Device
  readonly stream: Stream
  readonly rank: number
  readonly worldSize: number
  /**
   * Memory for the buffers, half for each, at the same offset on every rank. The default is new memory for each trial.
   */
  readonly arena?: DeviceBuffer<'u8'> | undefined
  /** The window that contains the arena, if it is one. */
  readonly window?: Window | undefined
}

/** Elements with guard elements before and after them, which nothing may write to. */
interface Guarded {
  readonly all: DeviceBuffer
  readonly part: DeviceBuffer
  /** The first content of `all`. */
  readonly before: Uint8Array
  readonly guard: number
}

const untouched = 0xa5

/** One rank's part of one trial: its buffers, the call, and the expected result. */
export class RankRun {
  readonly #trial: Trial
  readonly #place: Place
  readonly #values: TrialValues
  readonly #root: number
  readonly #bytes: number
  #send: Guarded | undefined
  #recv: Guarded | undefined
  #op: PreMulSum | undefined

  constructor(trial: Trial, place: Place, values: TrialValues) {
    this.#trial = trial
    this.#place = place
    const { worldSize } = place
    this.#root = trial.root % worldSize
    this.#bytes = dtypeInfo(trial.dtype).bytes
    this.#values = values
    const { send, recv } = this.#lengths()
    if (!trial.inPlace) {
      if (send !== undefined) this.#send = this.#guarded(send, 0, 'send')
      if (recv !== undefined) this.#recv = this.#guarded(recv, undefined, 'recv')
      return
    }
    // In place, only the larger buffer exists. The other buffer is this rank's part of it.
    const isSendLarger = send !== undefined && (recv === undefined || send > recv)
    if (isSendLarger) this.#send = this.#guarded(send, 0, 'send')
    else if (recv !== undefined) this.#recv = this.#guarded(recv, 0, 'recv')
    else if (send !== undefined) this.#send = this.#guarded(send, 0, 'send')
  }

  /** Returns the elements of this rank's two buffers. */
  #lengths(): { readonly send: number | undefined; readonly recv: number | undefined } {
    const { collective, count } = this.#trial
    const { rank, worldSize } = this.#place
    const isRoot = rank === this.#root
    const all = count * worldSize
    switch (collective) {
      case 'allReduce':
      case 'sendRecv':
        return { send: count, recv: count }
      case 'reduce':
        return { send: count, recv: isRoot ? count : undefined }
      case 'broadcast':
        return { send: isRoot ? count : undefined, recv: count }
      case 'allGather':
        return { send: count, recv: all }
      case 'reduceScatter':
        return { send: all, recv: count }
      case 'allToAll':
        return { send: all, recv: all }
      case 'gather':
        return { send: count, recv: isRoot ? all : undefined }
      case 'scatter':
        return { send: isRoot ? all : undefined, recv: count }
    }
  }

  /** Is true if the receive buffer holds the elements of all ranks in order, in place also this rank's own. */
  #isGathered(): boolean {
    return this.#trial.collective === 'allGather' || this.#trial.collective === 'gather'
  }

  /** @param start index of the first element in this rank's values; undefined for memory that will be written */
  #guarded(length: number, start: number | undefined, name: 'send' | 'recv'): Guarded {
    const { trial, place } = { trial: this.#trial, place: this.#place }
    // Buffers start at odd addresses too. Registered buffers start at even addresses, for which NCCL has faster paths.
    const guard = place.arena === undefined ? 1 + (trial.seed % 8) : 16
    const before = new Uint8Array((length + 2 * guard) * this.#bytes).fill(untouched)
    const inside = before.subarray(guard * this.#bytes, (guard + length) * this.#bytes)
    if (start !== undefined) {
      if (trial.inPlace && this.#isGathered() && length !== trial.count) {
        const own = this.#partOf(inside, place.rank)
        repeat(own, this.#own())
      } else repeat(inside, this.#own())
    }
    const { typedArray } = dtypeInfo(trial.dtype)
    const host = new typedArray(before.buffer) as TypedArrayOf<DType>
    const all =
      place.arena === undefined
        ? DeviceBuffer.from(place.device, host, { dtype: trial.dtype })
        : halfOf(place.arena, name).slice(0, before.length).reinterpret(trial.dtype).copyFromSync(host)
    return { all, part: all.slice(guard, guard + length), before: before.slice(), guard }
  }

  #own(): Uint8Array {
    return this.#values.of(this.#place.rank).bytes
  }

  #partOf(bytes: Uint8Array, index: number): Uint8Array {
    const size = this.#trial.count * this.#bytes
    return bytes.subarray(index * size, (index + 1) * size)
  }

  /** Queues the collective. Call it in a group if the process has several ranks. */
  call(): void {
    const { communicator, stream, rank, worldSize } = this.#place
    const { collective, dtype, op: named, count, inPlace } = this.#trial
    const root = this.#root
    const [send, recv] = this.#operands()
    if (named === 'preMulSum') {
      this.#op = communicator.createPreMulSum(scalarOf(dtype, rank), { dtype })
    }
    const op = this.#op ?? (named as Exclude<typeof named, 'preMulSum'>) ?? 'sum'
    const options = { stream, count }
    const given = (buffer: DeviceBuffer | null): DeviceBuffer => {
      if (buffer === null) throw new Error(`${collective} without a buffer on rank ${rank}`)
      return buffer
    }
    switch (collective) {
      case 'allReduce':
        communicator.allReduce(given(send), given(recv), { ...options, op })
        break
      case 'reduce':
        communicator.reduce(given(send), recv, { ...options, op, root })
        break
      case 'reduceScatter':
        communicator.reduceScatter(given(send), given(recv), { ...options, op })
        break
      case 'broadcast':
        communicator.broadcast(inPlace ? recv : send, given(recv), { ...options, root })
        break
      case 'allGather':
        communicator.allGather(given(send), given(recv), options)
        break
      case 'allToAll':
        communicator.allToAll(given(send), given(recv), options)
        break
      case 'gather':
        communicator.gather(given(send), recv, { ...options, root })
        break
      case 'scatter':
        communicator.scatter(send, given(recv), { ...options, root })
        break
      case 'sendRecv':
        communicator.send(given(send), { ...options, peer: (rank + 1) % worldSize })
        communicator.recv(given(recv), { ...options, peer: (rank + worldSize - 1) % worldSize })
    }
  }

  #operands(): [send: DeviceBuffer | null, recv: DeviceBuffer | null] {
    const send = this.#send?.part ?? null
    const recv = this.#recv?.part ?? null
    if (!this.#trial.inPlace) return [send, recv]
    const { count } = this.#trial
    const { rank } = this.#place
    const slice = (of: DeviceBuffer): DeviceBuffer =>
      of.length === count ? of : of.slice(rank * count, (rank + 1) * count)
    const lengths = this.#lengths()
    if (lengths.send === undefined) return [null, recv]
    if (lengths.recv === undefined) return [send ?? recv, null]
    if (send !== null) return [send, slice(send)]
    return recv === null ? [null, null] : [slice(recv), recv]
  }

  /** Returns what is wrong after the collective has ended, or undefined. */
  async check(): Promise<string | undefined> {
    const lengths = this.#lengths()
    const target = lengths.recv === undefined ? undefined : (this.#recv ?? this.#send)
    for (const [name, memory] of [['send', this.#send] as const, ['recv', this.#recv] as const]) {
      if (memory === undefined) continue
      const after = bytesOf(await memory.all.toArray())
      const wrong = memory === target ? this.#checkResult(memory, after) : this.#checkUntouched(memory, after)
      if (wrong !== undefined) return `${name}: ${wrong}`
    }
    return undefined
  }

  #checkUntouched({ before }: Guarded, after: Uint8Array): string | undefined {
    if (Buffer.compare(before, after) === 0) return undefined
    const at = after.findIndex((byte, index) => byte !== before[index])
    return `byte ${at} of ${after.length} was written to`
  }

  #checkResult(memory: Guarded, after: Uint8Array): string | undefined {
    const { collective, count, inPlace } = this.#trial
    const { rank } = this.#place
    const start = memory.guard * this.#bytes
    const end = after.length - start
    const inside = after.subarray(start, end)
    // The memory around the result. In place, this may be the rest of the larger buffer.
    const isPart = inPlace && (collective === 'reduceScatter' || collective === 'scatter') && memory === this.#send
    const result = isPart ? this.#partOf(inside, rank) : inside
    const first = start + (isPart ? rank * count * this.#bytes : 0)
    const around = [
      [0, first],
      [first + result.length, after.length],
    ] as const
    // A reduce-scatter in place may change the other parts.
    const mayUseRest = isPart && collective === 'reduceScatter'
    for (const [from, to] of mayUseRest
      ? ([
          [0, start],
          [end, after.length],
        ] as const)
      : around) {
      if (Buffer.compare(after.subarray(from, to), memory.before.subarray(from, to)) !== 0) {
        return `what lies beside the result was written to, in bytes ${from} to ${to} of ${after.length}`
      }
    }
    return this.#wrongElement(result)
  }

  #wrongElement(result: Uint8Array): string | undefined {
    const { collective, dtype, count } = this.#trial
    const { rank, worldSize } = this.#place
    const exactly = (of: number): Expected => ({ kind: 'exact', bytes: this.#values.of(of).bytes })
    if (isReduction(collective)) {
      return difference(dtype, result, this.#values.reduced, collective === 'reduceScatter' ? rank * count : 0)
    }
    switch (collective) {
      case 'broadcast':
        return difference(dtype, result, exactly(this.#root), 0)
      case 'scatter':
        return difference(dtype, result, exactly(this.#root), rank * count)
      case 'sendRecv':
        return difference(dtype, result, exactly((rank + worldSize - 1) % worldSize), 0)
      default: {
        for (let from = 0; from < worldSize; from += 1) {
          const begin = collective === 'allToAll' ? rank * count : 0
          const wrong = difference(dtype, this.#partOf(result, from), exactly(from), begin)
          if (wrong !== undefined) return `part ${from}: ${wrong}`
        }
        return undefined
      }
    }
  }

  dispose(): void {
    this.#op?.dispose()
    if (this.#place.arena !== undefined) return
    this.#send?.all.dispose()
    this.#recv?.all.dispose()
  }
}

function halfOf(arena: DeviceBuffer<'u8'>, name: 'send' | 'recv'): DeviceBuffer<'u8'> {
  return name === 'send' ? arena.slice(0, arena.length / 2) : arena.slice(arena.length / 2)
}

function repeat(target: Uint8Array, pattern: Uint8Array): void {
  for (let at = 0; at < target.length; at += pattern.length) {
    target.set(pattern.subarray(0, Math.min(pattern.length, target.length - at)), at)
  }
}
