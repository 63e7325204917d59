import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { scratchFolder } from '../../config/src/scratchFolder.js'
import { cornersOf } from '../dist/askCorners.js'
import { programOf } from '../dist/corners.js'

const script = fileURLToPath(new URL('../dist/run.js', import.meta.url))
const folder = scratchFolder()
const lines = (text: string) => programOf('cuda', `group g\n${text}`).split('\n')

describe('a list of corner cases', () => {
  it.each([
    ['"count" cuDeviceGetCount(NULL)', 'say("count", status = (long long)(cuDeviceGetCount(nullptr)));'],
    ['"sum" a + b', 'say("sum", (long long)(a + b));'],
    ['do cuMemFree_v2(at + 5)', 'cuMemFree_v2(any(at + 5));'],
    ['let at,other CUdeviceptr =1', 'static CUdeviceptr other;'],
    ['let at CUdeviceptr =1', 'at = any(1);'],
    ['let list int[2] =[3, 4]', 'list[1] = any(4);'],
    ['let sent shared unsigned', 'static unsigned (&sent) = *shared<unsigned>();'],
    ['set a.b=NULL, c=4', 'a.b = nullptr;'],
    ['hardware\n  do f()', '#ifdef SHOAL_HARDWARE'],
    ['for $a,$b in 1,2 3,4\n  do f($a, $b)', 'f(any(3), any(4));'],
    ['both "x" f(rank); g(rank)', 'if (const long long answer = (long long)(g(any(rank)))) return answer;'],
    ['macro twice $x\n  do f($x)\n  +inner\n+twice 1\n  do g(2)', 'g(any(2));'],
  ])('compiles %j to C++', (text, line) => {
    expect(lines(text)).toContain(line)
  })

  it.each([
    ['f(1)', '"f(1)" cannot be read'],
    ['let a int\nlet a float', 'a has two types in g'],
    ['do f()\n  do g()', '"do f()" has nothing below it'],
    ['do f($x)', '$x has no value'],
  ])('refuses %j', (text, problem) => {
    expect(() => lines(text)).toThrow(problem)
  })
})

it('a list is not asked of libraries that lack its functions', { timeout: 300_000 }, async () => {
  const path = join(folder, 'libempty.so')
  expect(spawnSync('g++', ['-shared', '-x', 'c++', '/dev/null', '-o', path]).status).toBe(0)
  const found = [{ library: 'driver', path, environment: {} }]
  const subjects = { found, notFound: [], devices: 2 } as unknown as Parameters<typeof cornersOf>[0]
  const include = fileURLToPath(new URL('../../../packages/sim/native/include', import.meta.url))
  const { ok, lines, data } = await cornersOf(subjects, { include, folder, isHardware: true })
  expect(lines[0]).toMatch(/^not asked: cuda: the libraries lack functions, such as cu\w+$/)
  expect([ok, data]).toEqual([true, {}])
})

it('corner cases of the driver are called in the library that Shoal finds', { timeout: 300_000 }, () => {
  const json = join(folder, 'corners.json')
  const asked = ['corners', '--libraries', 'driver', '--json', json, '--work', folder]
  const { status, stdout } = spawnSync(process.execPath, [script, ...asked], {
    encoding: 'utf8',
    env: { ...process.env, SHOAL_DEVICE: 'sim' },
  })
  expect(stdout).toMatch(/^cuda: \d{4} answers, 0 other than recorded\nnot asked: nccl: a library was not found\n/)
  expect(status).toBe(0)
  const { corners } = JSON.parse(readFileSync(json, 'utf8')) as { corners: Record<string, Record<string, number>> }
  expect(corners['cuda']?.['before init.cuInit(1)']).toBe(1)
})
