import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cxxMutants } from './cxx.js'
import type { Mutant } from './mutant.js'
import type { Random } from './random.js'
import { specMutants } from './spec.js'
import { typescriptMutants } from './typescript.js'

/** A command and the folder, below the root, in which it runs. */
export type Step = readonly [folder: string, command: string, ...args: string[]]

/** Sources that are mutated together, and the tests that cover them. */
export interface Subject {
  readonly name: string
  /** Path of each source below the root. */
  readonly files: readonly string[]
  /** Builds the files that the tests load. */
  readonly build: readonly Step[]
  /** Folders of tests in order. The next group runs only if no test of an earlier group noticed the mutant. */
  readonly tests: readonly (readonly string[])[]
  /** Test files that do not run. */
  readonly leftOut?: readonly string[]
}

const conformance = 'tooling/conformance/test'
const packageTests = (...names: string[]): string[] => names.map((name) => `packages/${name}/test`)
const bundle = (name: string): Step => [`packages/${name}`, process.execPath, '../../tooling/config/bundle.mjs']
const make = (name: string): Step => [`packages/${name}/native`, 'make', '-s', '-j', '2']
const generate: Step = ['.', process.execPath, 'tooling/bindgen/dist/main.js', '--from-spec']

/** Tests of other packages that cover a package, besides its own tests. */
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

/** Returns everything that is mutated: every package, the native code of `ffi` and `sim`, and the specs. */
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
      // These tests compare the spec with what the generator makes of the headers. A mutant stands for a fault of the
      // generator, and such a fault would make both wrong in the same way.
      leftOut: ['check.test.ts', 'add.test.ts'],
    })
  }
  return subjects
}

/** Returns the sources below a folder, without generated ones. */
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

/** Returns all mutants of a file: one list for a source, one list for each kind for a spec. */
export function mutantsOf(root: string, file: string): Mutant[][] {
  const text = readFileSync(join(root, file), 'utf8')
  if (file.endsWith('.json')) return specMutants(file, text)
  return [file.endsWith('.ts') ? typescriptMutants(file, text) : cxxMutants(file, text)]
}

/**
 * Draws `count` mutants of a subject. In a source, every line is equally likely; then a kind is drawn among the kinds
 * that the line allows. In a spec, a kind is drawn first. If mutants were drawn from the list of all mutants instead,
 * lines with many numbers and operators would fill most of the sample.
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
