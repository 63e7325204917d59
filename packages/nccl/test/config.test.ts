import { Communicator, type CommunicatorConfig, communicatorConfigFields, ncclSupports, UniqueId } from '@shoal/nccl'
import { initialNcclConfig, NCCL_CONFIG_UNDEF_INT, ncclConfig_t } from '@shoal/nccl-sys'
import { Feature } from '@shoal/types'
import { beforeAll, describe, expect, test } from 'vitest'
import { nativeConfig } from '../src/communicator/config.js'
import { errorOf, startSoftwareDevice } from './fixtures/device.js'

beforeAll(startSoftwareDevice)

const everyField: Required<Omit<CommunicatorConfig, 'raw'>> = {
  blocking: true,
  cgaClusterSize: 4,
  minCTAs: 1,
  maxCTAs: 16,
  netName: 'Socket',
  splitShare: false,
  trafficClass: 3,
  commName: 'grüße',
  collnetEnable: false,
  CTAPolicy: 'efficiency',
  shrinkShare: false,
  nvlsCTAs: 4,
  nChannelsPerNetPeer: 2,
  nvlinkCentricSched: true,
  graphUsageMode: 1,
  numRmaCtx: 1,
  maxP2pPeers: 8,
  graphStreamOrdering: true,
}

test('config fields are those of the installed NCCL', () => {
  expect(communicatorConfigFields().sort()).toEqual(Object.keys(everyField).sort())
})

test('ncclSupports() reports the features of the installed NCCL', () => {
  expect(ncclSupports(Feature.ncclShrink)).toBe(true)
  expect(errorOf(() => ncclSupports(Feature.multicast))).toBeInstanceOf(TypeError)
})

test('NCCL accepts every config field', async () => {
  const [communicator] = await Communicator.initAll([0], { config: everyField })
  await communicator?.destroy()
  const id = UniqueId.create()
  const one = await Communicator.initRank({ device: 1, rank: 0, worldSize: 1, id, config: everyField })
  await one.destroy()
})

test("undefined config fields keep NCCL's default", () => {
  const [empty, undefineds] = [{}, { blocking: undefined, netName: undefined }].map((config) =>
    nativeConfig(config, 'test'),
  )
  expect(undefineds?.bytes).toEqual(empty?.bytes)
  expect(nativeConfig(undefined, 'test')).toBeUndefined()
})

describe('raw config bytes for fields unknown to the package', () => {
  /** Returns a config of a newer header, which has eight more bytes. */
  function newer(values: Parameters<typeof initialNcclConfig>[0] = {}): Uint8Array {
    const raw = new Uint8Array(ncclConfig_t.size + 8)
    raw.set(initialNcclConfig(values, 23005).bytes.subarray(0, ncclConfig_t.size))
    new DataView(raw.buffer).setBigUint64(0, BigInt(raw.length), true)
    raw.fill(0x5a, ncclConfig_t.size)
    return raw
  }

  test('are written before the named fields', async () => {
    const raw = newer({ minCTAs: 2, maxCTAs: 4 })
    const made = nativeConfig({ raw, maxCTAs: 8, commName: 'raw', blocking: true }, 'test')
    expect(made?.bytes.subarray(ncclConfig_t.size, raw.length)).toEqual(new Uint8Array(8).fill(0x5a))
    const fields = ncclConfig_t.read(made as NonNullable<typeof made>)
    expect(fields).toMatchObject({ size: BigInt(raw.length), minCTAs: 2, maxCTAs: 8, blocking: 1 })
    expect(fields.cgaClusterSize).toBe(NCCL_CONFIG_UNDEF_INT)
    const [communicator] = await Communicator.initAll([0], { config: { raw, maxCTAs: 8 } })
    await communicator?.destroy()
  })

  test.each([
    ['no bytes', { raw: 'bytes' as never }, TypeError, 'config.raw must be a Uint8Array'],
    [
      'too few',
      { raw: new Uint8Array(8) },
      RangeError,
      'config.raw must be an ncclConfig_t of 16 to 4096 bytes, not 8',
    ],
    ['a wrong size', { raw: newer().subarray(0, 96) }, RangeError, 'config.raw must be 96 bytes by its own size'],
    ['no magic', { raw: newer().fill(0, 8, 12) }, RangeError, 'config.raw must be a struct with the magic'],
    ['a field of this package', { raw: newer({ blocking: 0 }) }, RangeError, 'config.raw must leave blocking unset'],
  ])('%s are refused', (_name, config, type, words) => {
    expect(() => nativeConfig(config, 'test')).toThrow(type)
    expect(() => nativeConfig(config, 'test')).toThrow(`test: ${words}`)
  })
})

describe('initAll refuses before NCCL is called', () => {
  test.each([
    ['an unknown field', { blockin: true }, TypeError, "maxP2pPeers, graphStreamOrdering, not 'blockin'"],
    ['a field of every object', { toString: true }, TypeError, "not 'toString'"],
    ['a flag that is a number', { blocking: 1 }, TypeError, 'config.blocking must be a boolean'],
    ['a number that is a text', { minCTAs: '4' }, TypeError, 'config.minCTAs must be an integer from 1'],
    ['a number that is NaN', { minCTAs: Number.NaN }, TypeError, 'config.minCTAs must be an integer from 1'],
    ['no thread block', { maxCTAs: 0 }, RangeError, 'config.maxCTAs must be an integer from 1 to 2147483647, not 0'],
    ['a fraction', { minCTAs: 1.5 }, TypeError, 'config.minCTAs must be an integer'],
    ['too large a cluster', { cgaClusterSize: 9 }, RangeError, 'from 0 to 8'],
    [
      'more at least than at most',
      { minCTAs: 8, maxCTAs: 4 },
      RangeError,
      'config.minCTAs must be at most config.maxCTAs, 4, not 8',
    ],
    ['an empty name', { commName: '' }, RangeError, 'config.commName must be a string that is not empty'],
    ['a NUL in a name', { netName: 'IB\0' }, TypeError, 'NUL'],
    ['an unknown policy', { CTAPolicy: 'fast' }, TypeError, "'default', 'efficiency' or 'zero'"],
    ['a policy of every object', { CTAPolicy: 'valueOf' }, TypeError, "'default', 'efficiency' or 'zero'"],
    ['an invalid config', 1, TypeError, 'config must be a plain object'],
    ['null', null, TypeError, 'config must be a plain object'],
  ])('%s', async (_, config, kind, words) => {
    const call = Communicator.initAll([0], { config: config as never })
    await expect(call).rejects.toThrow(kind)
    await expect(call).rejects.toThrow(words)
    await expect(call).rejects.toThrow('Communicator.initAll')
  })

  test('a device that does not exist', async () => {
    await expect(Communicator.initAll([0, 7], { config: {} })).rejects.toThrow(RangeError)
  })
})

test('a failing rank aborts the other ranks of the same initAll', async () => {
  const start = performance.now()
  await expect(Communicator.initAll([0, 1, 9], { config: { blocking: false } })).rejects.toThrow('no device 9')
  expect(performance.now() - start).toBeLessThan(30_000)
})
