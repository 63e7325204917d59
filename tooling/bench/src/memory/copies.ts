import { randomBytes } from 'node:crypto'
import { dirname } from 'node:path'
import { type Device, DeviceBuffer, PinnedBuffer } from '@shoal/driver'
import { defineLibrary } from '@shoal/ffi'
import { putHandle, putPointer, putSize } from '@shoal/ffi/calls'
import { compile, cudaIncludeFolder } from '../compile.js'
import { libraryPath } from '../devices.js'
import { type Case, type Entrant, type Row, takeTurns } from '../turns.js'
import { inWords, type Sizes } from './sizes.js'

const copies = defineLibrary({
  id: 'bench-copies',
  title: 'the copies of the benchmark',
  environment: 'SHOAL_BENCH_COPIES_LIBRARY',
  linux: ['libcopies.so'],
  hint: 'It is built by the benchmark itself.',
})

type AsyncLoop = (count: number) => Promise<void>

/** Copies of page-locked memory to the device and back, between the same two places for all. */
export async function measureCopies(device: Device, { copyBytes, counts }: Sizes, rounds: number): Promise<Row[]> {
  const libcuda = libraryPath('cuda')
  const options = ['-shared', '-fPIC', `-I${cudaIncludeFolder()}`, libcuda, `-Wl,-rpath,${dirname(libcuda)}`]
  copies.setPath(compile('copies.c', 'libcopies.so', options))
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
    const blocking: Record<string, (count: number) => void> = {
      toDevice: (count) => {
        for (let i = 0; i < count; i += 1) buffer.copyFromSync(host, queue)
      },
      toHost: (count) => {
        for (let i = 0; i < count; i += 1) buffer.copyToSync(back, queue)
      },
    }
    const awaited: Record<string, AsyncLoop> = {
      toDevice: async (count) => {
        for (let i = 0; i < count; i += 1) {
          buffer.copyFrom(host, queue)
          await stream.synchronize()
        }
      },
      toHost: async (count) => {
        for (let i = 0; i < count; i += 1) await buffer.copyTo(back, queue)
      },
    }
    const cases: Record<string, Case> = {
      toDevice: { title: `pinned host to device, ${inWords(copyBytes)}`, unit: 'µs', count: counts.copy, loops: 3 },
      toHost: { title: `device to pinned host, ${inWords(copyBytes)}`, unit: 'µs', count: counts.copy, loops: 3 },
    }
    const names = Object.keys(cases)
    const entrants: Entrant[] = [
      {
        name: 'C',
        cases: names,
        ask: (test, count) => device.primaryContext.run(() => c[test as keyof typeof c](count)),
      },
      {
        name: 'driver',
        cases: names,
        ask: (test, count) => {
          const start = performance.now()
          blocking[test]?.(count)
          return ((performance.now() - start) * 1000) / count
        },
      },
      {
        name: 'awaited',
        cases: names,
        ask: async (test, count) => {
          const start = performance.now()
          await awaited[test]?.(count)
          return ((performance.now() - start) * 1000) / count
        },
      },
    ]
    const rows = await takeTurns(cases, entrants, rounds)
    if (Buffer.compare(host.array, back.array) !== 0) throw new Error('what came back is not what was sent')
    return rows
  } finally {
    for (const object of [buffer, back, host, stream]) object.dispose()
  }
}
