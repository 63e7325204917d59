import { randomBytes } from 'node:crypto'
import { repeat, repeatAwaited, timeOf, timeOfAwaited } from '@shoal/cli/bench'
import { type Device, DeviceBuffer, PinnedBuffer } from '@shoal/driver'
import { defineLibrary } from '@shoal/ffi'
import { putHandle, putPointer, putSize } from '@shoal/ffi/calls'
import { compileWithCuda } from '../compile.js'
import { type Case, type Row, subjectOf, takeTurns } from '../turns.js'
import { inWords, type Sizes } from './sizes.js'

const copies = defineLibrary({
  id: 'bench-copies',
  title: 'the copies of the benchmark',
  environment: 'SHOAL_BENCH_COPIES_LIBRARY',
  linux: ['libcopies.so'],
  hint: 'It is built by the benchmark itself.',
})

/** Copies between page-locked memory and the device, in both directions. All subjects use the same memory. */
export async function measureCopies(device: Device, { copyBytes, counts }: Sizes, rounds: number): Promise<Row[]> {
  copies.setPath(compileWithCuda('copies.c', ['-shared', '-fPIC']))
  const stream = device.createStream({ nonBlocking: true })
  const host = PinnedBuffer.from(device, new Uint8Array(randomBytes(copyBytes)))
  const back = PinnedBuffer.allocate(device, 'u8', copyBytes)
  const buffer = DeviceBuffer.allocate(device, 'u8', copyBytes)
  try {
    const inC = (name: string, memory: bigint): ((count: number) => number) => {
      const call = copies.bind(name, 0, 6)
      const nanoseconds = new Float64Array(1)
      return (count) => {
        putHandle(0, buffer.address, name, 'device')
        putPointer(1, memory, name, 'host')
        putSize(2, copyBytes, name, 'bytes')
        putHandle(3, stream.handle, name, 'stream')
        putSize(4, count, name, 'count')
        putPointer(5, nanoseconds, name, 'nanoseconds')
        call()
        return (nanoseconds[0] ?? Number.NaN) / 1000
      }
    }
    const c = { toDevice: inC('copy_to_device', host.address), toHost: inC('copy_to_host', back.address) }
    const queue = { stream }
    const blocking = {
      toDevice: repeat(() => buffer.copyFromSync(host, queue)),
      toHost: repeat(() => buffer.copyToSync(back, queue)),
    }
    const awaited = {
      toDevice: repeatAwaited(() => {
        buffer.copyFrom(host, queue)
        return stream.synchronize()
      }),
      toHost: repeatAwaited(() => buffer.copyTo(back, queue)),
    }
    const about = { unit: 'µs', count: counts.copy, loops: 3 }
    const cases: Record<string, Case> = {
      toDevice: { ...about, title: `pinned host to device, ${inWords(copyBytes)}` },
      toHost: { ...about, title: `device to pinned host, ${inWords(copyBytes)}` },
    }
    const subjects = [
      subjectOf('C', c, (loop, count) => device.primaryContext.run(() => loop(count))),
      subjectOf('driver', blocking, (loop, count) => timeOf(count, 0, loop)),
      subjectOf('awaited', awaited, (loop, count) => timeOfAwaited(count, 0, loop)),
    ]
    const rows = await takeTurns(cases, subjects, rounds)
    if (Buffer.compare(host.array, back.array) !== 0) throw new Error('what came back is not what was sent')
    return rows
  } finally {
    for (const object of [buffer, back, host, stream]) object.dispose()
  }
}
