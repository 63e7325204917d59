import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Program, start as startProgram } from '../../testing/program.js'

const main = new URL('../dist/main.js', import.meta.url)

// These tests also cover the choice of the device.
function start(options: readonly string[], environment: NodeJS.ProcessEnv = {}): Program {
  return startProgram(main, options, { SHOAL_DEVICE: '', ...environment })
}

const run = (options: readonly string[], environment?: NodeJS.ProcessEnv) => start(options, environment).end

const forms = [
  ['one process', []],
  ['one process a rank', ['--ranks', '2']],
] as const

test.each(forms)('%s: sums, checks every element and prints the speed', async (_, form) => {
  const { code, output } = await run(['--device', 'sim', '--elements', '100003', ...form])
  expect(output).toContain('Shoal Software Device (SOFTWARE: this CPU, no GPU)')
  expect(output).toContain('100003 f32 on each device, 400012 bytes')
  expect(output).toContain('checked: all 200006 elements are right')
  expect(output).toMatch(/time: \d+\.\d+ ms/)
  const bandwidth = (name: string) => Number(output.match(new RegExp(`${name} bandwidth: ([\\d.]+) GB/s`))?.[1])
  // For two ranks 2(n - 1)/n is 1.
  expect(bandwidth('bus')).toBe(bandwidth('algorithm'))
  expect(code).toBe(0)
})

test.each(forms)('%s: fails on one wrong element', async (_, form) => {
  const { code, errors } = await run(['--device', 'sim', '--elements', '1001', '--corrupt', ...form])
  expect(errors).toContain('MISMATCH: 1 of 2002 elements are wrong')
  expect(errors).toContain('rank 1: element 500 is ')
  expect(code).toBe(1)
})

test('four devices have a bus bandwidth of 2·3/4 of the algorithm bandwidth', async () => {
  const { code, output } = await run(['--device', 'sim', '--devices', '4', '--elements', '1000003'])
  expect(code).toBe(0)
  expect(output).toContain('checked: all 4000012 elements are right')
  const [, algorithm = '', bus] =
    output.match(/algorithm bandwidth: ([\d.]+) GB\/s\s+bus bandwidth: ([\d.]+) GB\/s/) ?? []
  expect(algorithm).toMatch(/\.\d/)
  // Both were rounded to their last digit, which is much of them where the machine is busy.
  const lastDigit = 10 ** -(algorithm.split('.')[1] as string).length
  expect(Math.abs(Number(bus) - 1.5 * Number(algorithm))).toBeLessThanOrEqual(1.26 * lastDigit)
})

test('one device works alone', async () => {
  const { code, output } = await run(['--device', 'sim', '--devices', '1', '--elements', '7'])
  expect(code).toBe(0)
  expect(output).toContain('checked: all 7 elements are right')
})

test('both forms use the same data for the same seed', async () => {
  const options = ['--device', 'sim', '--elements', '11', '--seed', '5', '--corrupt']
  const [one, two] = await Promise.all([run(options), run([...options, '--ranks', '2'])])
  const example = /rank 1: element.*/
  expect(one.errors.match(example)?.[0]).toBeDefined()
  expect(one.errors.match(example)?.[0]).toBe(two.errors.match(example)?.[0])
})

test('more ranks than devices are refused with a reason', async () => {
  const { code, errors } = await run(['--device', 'sim', '--devices', '2', '--ranks', '3'])
  expect(code).toBe(2)
  expect(errors).toContain('NCCL refuses two ranks on one device')
})

test.each([
  [['--elements', '0'], '--elements must be a whole number'],
  [['--elements', '1.5'], '--elements must be a whole number'],
  [['--device', 'tpu'], '--device must be'],
  [['--nonsense'], '--nonsense'],
])('wrong options are refused: %j', async (options, words) => {
  const { code, errors } = await run(options)
  expect(code).toBe(2)
  expect(errors).toContain(words)
  expect(errors).not.toContain('    at ')
})

test('a requested GPU that does not exist is an error', async () => {
  // A path without a library simulates the missing driver, even on a machine with a driver.
  const noDriver = { SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' }
  const asked = await run(['--device', 'gpu', '--elements', '7'], noDriver)
  expect(asked).toMatchObject({ code: 2 })
  expect(asked.errors).toContain('a GPU was asked for')
  const expected = await run(['--elements', '7'], { ...noDriver, SHOAL_EXPECT_GPU: '1' })
  expect(expected).toMatchObject({ code: 2 })
  expect(expected.errors).toContain('a GPU was asked for')
  const contradiction = await run(['--device', 'sim'], { SHOAL_EXPECT_GPU: '1' })
  expect(contradiction).toMatchObject({ code: 2 })
})

/** Returns the lines of stderr without the software device's own line. */
function linesOf(errors: string): string[] {
  return errors.split('\n').filter((line) => line !== '' && !line.startsWith('shoal: software device'))
}

const tooMuch = ['--device', 'sim', '--elements', '1000000']
const smallDevice = { SHOAL_SIM_MEMORY_BYTES: '4194304' }

test.each(forms)('%s: a failure is reported in one line', async (_, form) => {
  const { code, errors } = await run([...tooMuch, ...form], smallDevice)
  expect(linesOf(errors)).toEqual([
    expect.stringMatching(/^all-reduce: (rank \d failed: )?cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY/),
  ])
  expect(code).toBe(2)
})

test.each(forms)('%s: --verbose adds the stack of a failure', async (_, form) => {
  const { code, errors } = await run([...tooMuch, '--verbose', ...form], smallDevice)
  expect(errors).toContain('CUDA_ERROR_OUT_OF_MEMORY')
  expect(errors).toMatch(/\n +at .*(oneProcess|rank)\.js/)
  expect(code).toBe(2)
})

test('without a driver the program uses the software device and prints a notice', async () => {
  const { code, output } = await run(['--elements', '1001'], { SHOAL_CUDA_LIBRARY: '/nowhere/libcuda.so.1' })
  expect(output).toContain('NO GPU')
  expect(output).toContain('SOFTWARE DEVICE')
  expect(output).toContain('all 2002 elements are right')
  expect(code).toBe(0)
})

test('a killed rank ends the job, and leaves no process behind', async () => {
  const { child, end } = start(['--device', 'sim', '--ranks', '3', '--elements', '3000001', '--iterations', '2000'])
  const ranks = await childrenOf(child.pid as number, 3)
  process.kill(ranks[1] as number, 'SIGKILL')
  const { code, errors } = await end
  expect(code).toBe(2)
  expect(linesOf(errors)).toEqual([
    expect.stringMatching(/^all-reduce: rank \d (failed: \S.*|ended early \(SIGKILL\))$/),
  ])
  for (const pid of ranks) expect(isAlive(pid)).toBe(false)
})

test('ranks end when their parent is killed', async () => {
  const { child, end } = start(['--device', 'sim', '--ranks', '2', '--elements', '3000001', '--iterations', '2000'])
  const ranks = await childrenOf(child.pid as number, 2)
  child.kill('SIGKILL')
  await end
  await until(() => ranks.every((pid) => !isAlive(pid)))
})

async function childrenOf(parent: number, count: number): Promise<number[]> {
  let found: number[] = []
  await until(() => {
    found = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter(Boolean)
      .map(Number)
    return found.length === count
  })
  return found
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 20_000
  while (!condition()) {
    if (performance.now() > end) throw new Error('it did not come to that within 20 s')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
