import { expect, test } from 'vitest'
import { runFixture } from './support/fixture.js'
import { compile, shimEnvironment } from './support/shim.js'

const shim = compile('multicastShim')

interface Refusal {
  readonly name: string
  readonly message: string
  readonly since: string
  readonly installed: string
}
interface Outcome {
  readonly granularity: Refusal
  readonly create: Refusal
  readonly addDevice: readonly Refusal[]
  readonly left: readonly number[]
}

async function outcome(environment: Record<string, string>): Promise<Outcome> {
  const result = await runFixture('multicastGate.mjs', { ...shimEnvironment(shim), ...environment })
  expect(result.stderr).toBe('')
  expect(result.code).toBe(0)
  return JSON.parse(result.stdout) as Outcome
}

const refusal = (reason: string, installed: string) => ({
  name: 'FeatureNotSupportedError',
  api: 'multicast objects',
  message: expect.stringContaining(reason),
  since: '12.1',
  installed,
})

test('the error for a driver older than 12.1 names the driver version', async () => {
  const all = await outcome({ SHIM_VERSION: '12000' })
  const tooOld = refusal('the driver is for CUDA 12.0; they came with 12.1', '12.0')
  expect(all.granularity).toEqual(tooOld)
  expect(all.create).toEqual(tooOld)
  expect(all.addDevice).toEqual([tooOld, tooOld])
  expect(all.left).toEqual([0, 0])
})

test('the error if no device supports multicast names the missing attribute', async () => {
  const all = await outcome({ SHIM_VERSION: '13000', SHIM_MULTICAST: '' })
  const none = refusal('no device has the attribute MULTICAST_SUPPORTED', '13.0')
  expect(all.granularity).toEqual(none)
  expect(all.create).toEqual(none)
  expect(all.addDevice).toEqual([none, none])
  expect(all.left).toEqual([0, 0])
})

test('the error if one device lacks multicast support names that device', async () => {
  const all = await outcome({ SHIM_VERSION: '12010', SHIM_MULTICAST: '1' })
  expect(all.granularity).toBe('done')
  expect(all.create).toBe('done')
  expect(all.addDevice).toEqual([refusal('device 0 does not have the attribute MULTICAST_SUPPORTED', '12.1'), 'done'])
  expect(all.left).toEqual([0, 0])
})
