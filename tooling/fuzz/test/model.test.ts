import { expect, test } from 'vitest'
import { reduced } from '../dist/model/arithmetic.js'
import { readOptions, runCampaign } from '../dist/model/campaign.js'
import { shrink } from '../dist/model/shrink.js'

const budget = 40_000

test(`${budget} random steps with a new seed match the model`, async () => {
  const options = readOptions(['--steps', String(budget)])
  if (typeof options === 'string') throw new Error(options)
  const said: string[] = []
  const { steps, failure } = await runCampaign({ ...options, say: (line) => said.push(line) })
  console.log(`seed ${options.seed}, ${steps} steps`)
  expect(failure, said.join('\n')).toBeUndefined()
  expect(steps).toBeGreaterThanOrEqual(budget)
})

test('a failure is reported with its seed, and reduced to fewer steps', async () => {
  const all = [...Array(60).keys()]
  const fails = async (steps: readonly number[]): Promise<boolean> => steps.includes(7) && steps.includes(41)
  expect(await shrink(all, fails, 100)).toEqual([7, 41])
})

test.each(['--seed=x', '--steps=-1', '--sanitize=memory', '--only=1,b'])(
  'the model program refuses the option %s',
  (value) => {
    expect(readOptions([value])).toMatch(value.split('=')[0] as string)
  },
)

test('the model keeps the low bits of products of large integers', () => {
  const part = (value: number) => ({
    bytes: new Uint8Array(Int32Array.of(value).buffer),
    defined: new Uint8Array(4).fill(1),
  })
  const { bytes } = reduced('i32', 'prod', [part(0x7654_3211), part(-0x1234_5679)])
  expect(new Int32Array(bytes.buffer)).toEqual(Int32Array.of(Math.imul(0x7654_3211, -0x1234_5679)))
})
