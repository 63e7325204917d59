import { withContext } from '@shoal/cuda-sys'
import { cuDevicePrimaryCtxRetain, cuInit, cuStreamCreate, cuStreamSynchronize } from '@shoal/cuda-sys/driver'
import { useSoftwareDevice } from '@shoal/ffi'
import { Session, type SymmetricBuffer, UniqueId } from '@shoal/nvshmem'
import { DisposedError, type StreamLike, streamProtocol } from '@shoal/types'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

useSoftwareDevice({ devices: 1 })

let session: Session
let stream: StreamLike & { wait(): void; end(): void }

beforeAll(async () => {
  cuInit(0)
  const out = new BigUint64Array(1)
  cuDevicePrimaryCtxRetain(out, 0 as never)
  const context = out[0] as bigint
  withContext(context, () => cuStreamCreate(out, 1))
  const handle = out[0] as never
  const identity = Object.freeze({ version: 0, handle, deviceOrdinal: 0, context } as const)
  let hasEnded = false
  stream = {
    get [streamProtocol]() {
      if (hasEnded) throw new DisposedError('stream')
      return identity
    },
    wait: () => void withContext(context, () => cuStreamSynchronize(handle)),
    end: () => {
      hasEnded = true
    },
  }
  session = await Session.init({ device: 0, rank: 0, worldSize: 1, id: UniqueId.create() })
})

afterAll(() => session.finalize())

describe('a repeated transfer on a stream', () => {
  let target: SymmetricBuffer<'f32'>
  let source: SymmetricBuffer<'f32'>

  beforeAll(async () => {
    target = await session.allocate('f32', 3)
    source = await session.allocate('f32', 3)
  })

  test.for(['put', 'get', 'putNonBlocking', 'getNonBlocking'] as const)(
    '%s has correct results each time, and detects each change',
    async (kind) => {
      const transfer = async (options: object = {}, to = target, from = source): Promise<number[]> => {
        await session[`${kind}OnStream`](to, from, { pe: 0, stream, ...options })
        await session.quietOnStream({ stream })
        stream.wait()
        return [...to.toArraySync()]
      }
      target.fillSync(0)
      source.copyFromSync(new Float32Array([1, 2, 3]))
      expect(await transfer()).toEqual([1, 2, 3])
      source.copyFromSync(new Float32Array([4, 5, 6]))
      expect(await transfer()).toEqual([4, 5, 6])
      source.copyFromSync(new Float32Array([7, 8, 9]))
      expect(await transfer({ count: 1 })).toEqual([7, 5, 6])
      expect(await transfer()).toEqual([7, 8, 9])
      await expect(transfer({ pe: 1 })).rejects.toThrow(/pe must be an integer from 0 to 0, not 1/)
      await expect(transfer({ count: 4 })).rejects.toThrow(RangeError)
      await expect(transfer({}, target.slice(1))).rejects.toThrow(RangeError)
      await expect(transfer({}, target.reinterpret('i32') as never)).rejects.toThrow(TypeError)
      expect(await transfer({}, target.slice(1), source.slice(0, 2))).toEqual([7, 8])
      expect(await transfer()).toEqual([7, 8, 9])
      const gone = await session.allocate('f32', 3)
      for (const [to, from] of [
        [target, gone],
        [gone, target],
      ] as const) {
        gone.fillSync(1)
        await transfer({}, to, from)
      }
      await gone.dispose()
      await expect(transfer({}, gone, target)).rejects.toThrow(DisposedError)
      await expect(transfer({}, target, gone)).rejects.toThrow(DisposedError)
    },
  )

  test('refuses a stream that has ended', async () => {
    const options = { pe: 0, stream }
    await session.putOnStream(target, source, options)
    stream.wait()
    stream.end()
    await expect(session.putOnStream(target, source, options)).rejects.toThrow(DisposedError)
  })
})
