import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cxxMutants } from './cxx.js'
import type { Mutant } from './mutant.js'
import type { Random } from './random.js'
import { specMutants } from './spec.js'
import { typescriptMutants } from './typescript.js'

/** A command and the folder, below the root, that it runs in. */
export type Step = readonly [folder: string, command: string, ...args: string[]]

/** Sources that are mutated together, and what sees them. */
export interface Subject {
  readonly name: string
  /** Path of each source below the root. */
  readonly files: readonly string[]
  /** Makes what tests load. */
  readonly build: readonly Step[]
  /** Folders of tests, in turn: the next one is asked when nothing in those before noticed. */
  readonly tests: readonly (readonly string[])[]
  /** Files of tests that are not asked. */
  readonly leftOut?: readonly string[]
}

const conformance = 'tooling/conformance/test'
const packageTests = (...names: string[]): string[] => names.map((name) => `packages/${name}/test`)
const bundle = (name: string): Step => [`packages/${name}`, process.execPath, '../../tooling/config/bundle.mjs']
const make = (name: string): Step => [`packages/${name}/native`, 'make', '-s', '-j', '2']
const generate: Step = ['.', process.execPath, 'tooling/bindgen/dist/main.js', '--from-spec']

/** Who else sees a package, besides its own tests. */
const seenBy: Readonly<Record<string, readonly (readonly string[])[]>> = {
  types: [packageTests('ffi', 'driver')],
  ffi: [[conformance], packageTests('driver')],
  'cuda-sys': [['tooling/bindgen/test']],
  'nccl-sys': [['tooling/bindgen/test'], packageTests('nccl')],
  'nvshmem-sys': [['tooling/bindgen/test'], packageTests('nvshmem')],
  nvrtc: [packageTests('nvjitlink', 'driver')],
  nvjitlink: [],
  driver: [packageTests('runtime'), [conformance]],
  runtime: [packageTests('driver'), [conformance]],
  nccl: [[conformance]],
  nvshmem: [[conformance]],
  launch: [packageTests('cli')],
  cli: [],
}

/** What is mutated: every package, the native code of two, and the spec. */
export function allSubjects(root: string): Subject[] {
  const subjects: Subject[] = Object.entries(seenBy).map(([name, others]) => ({
    name,
    files: sources(root, `packages/${name}/src`, '.ts'),
    build: [bundle(name)],
    tests: [packageTests(name), ...others],
  }))
  subjects.push({
    name: 'ffi/native',
    files: sources(root, 'packages/ffi/native/src', '.cc'),
    build: [make('ffi')],
    tests: [packageTests('ffi'), [conformance]],
  })
  for (const [part, others] of [
    ['cuda', [packageTests('driver')]],
    ['cudart', [packageTests('runtime')]],
    ['nccl', [packageTests('nccl')]],
    ['nvshmem', [packageTests('nvshmem')]],
    ['shared', [packageTests('nvshmem', 'nccl')]],
    ['ptx', [['tooling/kernels/test'], packageTests('driver')]],
  ] as const) {
    subjects.push({
      name: `sim/${part}`,
      files: sources(root, `packages/sim/native/${part}`, '.cc'),
      build: [make('sim')],
      tests: [packageTests('sim'), ...others, [conformance]],
    })
  }
  for (const [library, packages] of [
    ['driver', ['cuda-sys', 'driver']],
    ['runtime', ['cuda-sys', 'runtime']],
    ['nccl', ['nccl-sys']],
    ['nvshmem', ['nvshmem-sys']],
  ] as const) {
    subjects.push({
      name: `spec/${library}`,
      files: [`tooling/bindgen/spec/${library}.json`],
      build: [generate, ...packages.map(bundle)],
      tests: [['tooling/bindgen/test'], packageTests(...packages)],
      // They compare the spec with what the generator makes of headers: one that is wrong would make the same fault
      // twice.
      leftOut: ['check.test.ts', 'add.test.ts'],
    })
  }
  return subjects
}

/** Sources below a folder that people wrote. */
function sources(root: string, folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(
      (file) =>
        (file.endsWith(ending) || (ending === '.cc' && file.endsWith('.h'))) &&
        !/(^|\/)generated\/|\.gen\.(?:ts|h)$/.test(file),
    )
    .map((file) => `${folder}/${file}`)
    .sort()
}

/** All mutants of a source; of a spec, a list for each kind. */
export function mutantsOf(root: string, file: string): Mutant[][] {
  const text = readFileSync(join(root, file), 'utf8')
  if (file.endsWith('.json')) return specMutants(file, text)
  return [file.endsWith('.ts') ? typescriptMutants(file, text) : cxxMutants(file, text)]
}

/**
 * Draws so many mutants of a subject: of a source a line, all equally likely, then one of the kinds of faults that it
 * may have; of a spec a kind. Drawn from the list of all mutants, lines full of numbers and operators would be most of
 * the sample.
 */
export function draw(root: string, subject: Subject, count: number, random: Random): Mutant[] {
  const places = subject.files.flatMap((file) => {
    const kinds = mutantsOf(root, file)
    if (file.endsWith('.json'))
      return kinds.flatMap((list) => random.shuffled(list).slice(0, count)).map((one) => [one])
    return byLine(readFileSync(join(root, file), 'utf8'), kinds.flat())
  })
  return random
    .shuffled(places)
    .slice(0, count)
    .map((place) => {
      const [kind] = random.shuffled([...new Set(place.map((one) => one.kind))])
      return random.shuffled(place.filter((one) => one.kind === kind))[0] as Mutant
    })
}

function byLine(text: string, mutants: readonly Mutant[]): Mutant[][] {
  const lines = new Map<number, Mutant[]>()
  for (const mutant of mutants) {
    const line = text.slice(0, mutant.start).split('\n').length
    lines.set(line, [...(lines.get(line) ?? []), mutant])
  }
  return [...lines.values()]
}
