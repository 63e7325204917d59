import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '1' })
const { cases, runCases } = await import('@shoal/kernels')
const { compile, compilerVersion, digests, digestsFile, installedCompiler, ptxFolder, sourceNames } = await import(
  '@shoal/kernels/build'
)
const { Device } = await import('@shoal/driver')

const seed = Number(process.env['SHOAL_SEED'] ?? randomInt(2 ** 32))
const files = [...new Set(cases.map(({ file }) => file))]

describe.each(files)('%s', (file) => {
  const own = cases.filter((one) => one.file === file)
  let outcomes: Awaited<ReturnType<typeof runCases>>
  beforeAll(async () => {
    outcomes = await runCases(Device.get(0), seed, own)
  })

  test.each(own.map(({ name }, index) => [name, index] as const))('%s', (_, index) => {
    const { outcome, error, compared } = outcomes[index] as (typeof outcomes)[number]
    expect({ outcome, error }, `seed ${seed}`).toEqual({ outcome: 'ok', error: undefined })
    expect(compared).toBeGreaterThan(0)
  })
})

test('every kernel of the sources has a test case', () => {
  const helpers = ['linkNodes', 'makeList']
  const named = new Set([...cases.map(({ file, name }) => `${file} ${name}`), ...helpers])
  const kernels = sourceNames().flatMap((file) => {
    const ptx = readFileSync(join(ptxFolder, `${file}.ptx`), 'utf8')
    return [...ptx.matchAll(/^\.visible \.entry (\w+)\(/gm)].map(([, name]) => `${file} ${name}`)
  })
  expect(kernels.length).toBeGreaterThan(200)
  expect(kernels.filter((name) => !named.has(name) && !helpers.includes(name.split(' ')[1] as string))).toEqual([])
})

test('a kernel can print', () => {
  const run = fileURLToPath(import.meta.resolve('@shoal/kernels/run'))
  const { stdout } = spawnSync(process.execPath, [run, '--filter', 'system prints'], { encoding: 'utf8' })
  const lines = [0, 1].map((block) => `block ${block} of 2: text q  2.71 0000beef 48879000342153 %`)
  expect(stdout.split('\n').filter((line) => line.startsWith('block '))).toEqual(lines)
})

test('the committed PTX belongs to the sources', () => {
  expect(readdirSync(ptxFolder).sort()).toEqual(
    ['others', 'sources.json', ...sourceNames().map((name) => `${name}.ptx`)].sort(),
  )
  expect(JSON.parse(readFileSync(digestsFile, 'utf8'))).toEqual(digests())
})

test('the compiler has the same output for the sources', (context) => {
  if (installedCompiler() !== compilerVersion) context.skip(`there is no nvcc ${compilerVersion}`)
  // Compiles four sources, others in each run, because all of them would take too long.
  for (let left = sourceNames(), count = 0; count < 4; count += 1) {
    const name = left[randomInt(left.length)] as string
    left = left.filter((each) => each !== name)
    expect(compile(name) === readFileSync(join(ptxFolder, `${name}.ptx`), 'utf8'), name).toBe(true)
  }
})
