import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { cxxMutants } from '../src/cxx.js'
import { type Mutant, mutated, placeOf } from '../src/mutant.js'
import { Random } from '../src/random.js'
import { type Equivalent, isEquivalent, type Result, rowsIn, rowsOf, table } from '../src/report.js'
import { specMutants } from '../src/spec.js'
import { allSubjects, draw, mutantsOf, type Subject } from '../src/subjects.js'
import { typescriptMutants } from '../src/typescript.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const all = (mutants: readonly Mutant[], text: string): string[] => mutants.map((one) => mutated(one, text))

/** Returns the kind of each mutant, the replaced text and the replacement. */
const changes = (mutants: readonly Mutant[], text: string): string[] =>
  mutants.map(({ kind, start, end, replacement }) => `${kind}: ${text.slice(start, end)} > ${replacement}`)

describe('generated faults', () => {
  test('of TypeScript change conditions, operators and literals, but not types or error texts', () => {
    const text = `type Two = 2
export function f(a: 1 | 2) {
  if (a > 1) throw new RangeError(a + 1)
  return a ?? true
}
`
    expect(changes(typescriptMutants('f.ts', text), text)).toEqual([
      'condition turned round: a > 1 > !(a > 1)',
      'condition never true: a > 1 > false',
      'operator: a > 1 > ((a) >= (1))',
      'number: 1 > 2',
      'operator: a ?? true > ((a) && (true))',
      'term left out: a ?? true > (a)',
      'boolean: true > false',
    ])
  })

  test.each([
    ['await idle()', ['wait left out: await idle() > ;', 'wait left out: await idle() > (idle())']],
    ['g(a, b)', ['statement left out: g(a, b) > ;', 'argument left out: , b > ']],
    [
      'x = view.at(offset)',
      ['statement left out: x = view.at(offset) > ;', 'argument left out: offset > ', 'argument zero: offset > 0'],
    ],
    [
      'low = n < m ? 0 : high',
      ['always one branch: n < m ? 0 : high > (0)', 'always one branch: n < m ? 0 : high > (high)'],
    ],
    ['f = { a, b: c }', ['property left out: a,  > ', 'property left out: , b: c > ']],
    ['keep = [a, ...b]', ['element left out: a,  > ', 'element left out: , ...b > ']],
    ['drop = (late) => late.dispose()', ['call left out: late.dispose() > undefined']],
    ['const all = list.find(isEven)', ['another function: find > findLast']],
  ])('of TypeScript remove statements in %s', (text, wanted) => {
    expect(changes(typescriptMutants('a.ts', text), text)).toEqual(expect.arrayContaining(wanted))
  })

  test('of TypeScript keep method names that every object has', () => {
    const text = 'const text = value.toString()'
    expect(typescriptMutants('a.ts', text)).toEqual([])
  })

  test('of C++ skip comments, text, directives and template arguments', () => {
    const text = `#define TWO 2
int f(int a) {
  std::vector<int> list;  // 1 + 1
  if (a < 3) note("4 < 5");
  g(a);
  return a + 1;
}
`
    expect(changes(cxxMutants('f.cc', text), text).sort()).toEqual(
      [
        'operator: < > <=',
        'number: 3 > 4',
        'condition turned round: a < 3 > !(a < 3)',
        'condition never true: a < 3 > false && (a < 3)',
        'statement left out: g(a); > ;',
        'operator: + > -',
        'number: 1 > 2',
        'term left out:  + 1 > ',
      ].sort(),
    )
  })

  test('of C++ remove statements', () => {
    const text = `CUresult f() {
  std::lock_guard lock(mutex_);
  if (const CUresult status = check(at)) return status;
  own.users += 1;
  return read(base + offset);
}
`
    expect(changes(cxxMutants('f.cc', text), text)).toEqual(
      expect.arrayContaining([
        'scope left out: std::lock_guard lock(mutex_); > ;',
        'status ignored: const CUresult status = check(at) > (check(at), false)',
        'statement left out: own.users += 1; > ;',
        'term left out:  + offset > ',
      ]),
    )
  })

  test('of a spec change constants, enumerators, parameter types, versions and offsets', () => {
    const text = '{"value":"7","kind":"number"} ["A",3] "lowered":{"kind":"size"} "since":12010 "offset":8'
    expect(all(specMutants('spec.json', text).flat(), text)).toEqual([
      text.replace('"7"', '"8"'),
      text.replace('3]', '4]'),
      text.replace('{"kind":"size"}', '{"kind":"integer","type":"i32"}'),
      text.replace('12010', '12011'),
      text.replace('8', '12'),
    ])
  })

  test('are reported by line', () => {
    const text = 'a\n  if (b)\n'
    expect(
      placeOf({ kind: 'condition never true', file: 'f.ts', start: 8, end: 9, replacement: 'false' }, text),
    ).toEqual({
      file: 'f.ts',
      line: 2,
      before: 'if (b)',
      change: 'b → false',
    })
  })
})

describe('the sample of faults', () => {
  const subjects = allSubjects(root)

  test('covers every package with native code and spec, and has sources and tests of each', () => {
    const names = subjects.map(({ name }) => name)
    for (const name of ['types', 'driver', 'nvshmem', 'cli', 'ffi/native', 'sim/cuda', 'spec/nccl']) {
      expect(names).toContain(name)
    }
    for (const subject of subjects) {
      expect(subject.files.length * subject.tests.length, subject.name).toBeGreaterThan(0)
      expect(draw(root, subject, 5, new Random(1)), subject.name).toHaveLength(5)
    }
    for (const { files } of subjects) expect(files.filter((file) => /generated|\.gen\./.test(file))).toEqual([])
  })

  test('is determined by the seed', () => {
    const subject = subjects.find(({ name }) => name === 'launch') as Subject
    const drawn = (seed: number) => draw(root, subject, 8, new Random(seed))
    expect(drawn(1)).toEqual(drawn(1))
    expect(drawn(1)).not.toEqual(drawn(2))
    expect(new Set(drawn(1).map(({ file, start, replacement }) => `${file} ${start} ${replacement}`)).size).toBe(8)
  })
})

test('the score excludes uncompilable and equivalent faults, and reports later detections', () => {
  const place = { file: 'f.ts', line: 1, before: 'a', change: 'b' }
  const result = (subject: string, outcome: Result['outcome'], seed = 1, isAgain = false): Result => {
    return { subject, seed, kind: 'operator', outcome, isAgain, ...place }
  }
  const rows = rowsOf([
    result('sim/cuda', 'noticed'),
    result('sim/nccl', 'late', 1, true),
    result('sim/nccl', 'survived', 2),
    result('sim/nccl', 'unbuilt'),
    result('ffi/native', 'unclear'),
    result('types', 'equivalent'),
    result('types', 'noticed'),
  ])
  const text = table(rows)
  expect(text.split('\n').slice(2)).toEqual([
    '| sim, native code | 1 | 2 | 1 | 2 | 0 | 100 % |',
    '| sim, native code | 2 | 1 | 0 | 0 | 0 | 0 % |',
    '| ffi, native code | 1 | 0 | 0 | 0 | 0 |  |',
    '| types | 1 | 1 | 1 | 1 | 1 | 100 % |',
    '| all |  | 4 | 2 | 3 | 1 | 75 % |',
  ])
  expect(rowsIn(text)).toEqual(rows)
  expect(isEquivalent(place, [{ ...place, reason: 'it is' }])).toBe(true)
  expect(isEquivalent({ ...place, change: 'c' }, [{ ...place, reason: 'it is' }])).toBe(false)
})

test('every entry of equivalents.json matches a fault of the current sources', () => {
  const listed = JSON.parse(readFileSync(`${root}tooling/mutate/equivalents.json`, 'utf8')) as Equivalent[]
  const places = [...new Set(listed.map(({ file }) => file))].flatMap((file) => {
    const text = readFileSync(`${root}${file}`, 'utf8')
    return mutantsOf(root, file)
      .flat()
      .map((one) => placeOf(one, text))
  })
  expect(listed.filter((one) => !places.some((place) => isEquivalent(place, [one])))).toEqual([])
})
