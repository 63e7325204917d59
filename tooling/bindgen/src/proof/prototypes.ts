// A fictitious library with random prototypes of every shape that the generator supports. Real libraries lack most of
// them.

import type { FunctionSpec, IntegerKind, LibrarySpecFile, Lowered, StructSpec } from '../spec/types.js'
import { Random } from './random.js'

const integers: readonly IntegerKind[] = ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64']
const structSizes: readonly (readonly [size: number, alignment: number])[] = [
  [1, 1],
  [2, 2],
  [3, 1],
  [4, 4],
  [5, 1],
  [8, 8],
  [9, 1],
  [12, 4],
  [14, 2],
  [16, 8],
  [16, 1],
  [17, 1],
  [20, 4],
  [24, 8],
  [56, 8],
  [127, 1],
  [128, 8],
]

const structs: readonly StructSpec[] = structSizes.map(([size, alignment]) => ({
  name: `memS${size}x${alignment}`,
  aliases: [],
  union: false,
  size,
  alignment,
  ctype: `memS${size}x${alignment}`,
  fields: [
    {
      name: 'words',
      ctype: `uint${8 * alignment}_t`,
      type: { kind: `u${8 * alignment}` as IntegerKind },
      offset: 0,
      size: alignment,
      count: size / alignment,
    },
  ],
}))

/** The capacity of the argument block: integer words, and floating-point registers. */
const most = { words: 44, floats: 8 }

function randomKind(random: Random): Lowered {
  const turn = random.below(20)
  if (turn < 7) return { kind: 'integer', type: random.pick(integers) }
  if (turn < 10) return { kind: 'float', type: random.pick(['f32', 'f64'] as const) }
  if (turn < 13) {
    const { name: type, size, alignment } = random.pick(structs)
    return { kind: 'struct', type, size, alignment }
  }
  return random.pick<Lowered>([
    { kind: 'pointer' },
    { kind: 'cstring' },
    { kind: 'size' },
    { kind: 'bool' },
    { kind: 'enum', type: 'memSigned', signed: true },
    { kind: 'enum', type: 'memUnsigned', signed: false },
    { kind: 'handle', type: 'memHandle' },
  ])
}

function randomPrototype(index: number, random: Random): FunctionSpec {
  const name = `prototype${index}`
  const parameters: FunctionSpec['parameters'] = []
  let words = 2
  let floats = 0
  const count = random.below(16)
  while (parameters.length < count) {
    const lowered = randomKind(random)
    if (lowered.kind === 'float') floats++
    else words += lowered.kind === 'struct' ? Math.ceil(lowered.size / 8) : 1
    // Registers that a large struct leaves unused count for the struct.
    if (words > most.words - 5 || floats > most.floats) break
    parameters.push({ name: `p${parameters.length}`, ctype: 'int', lowered, direction: 'in' })
  }
  const result: Lowered = random.below(12) === 0 ? { kind: 'void' } : randomKind(random)
  return {
    name,
    symbol: name,
    lookup: name,
    since: 0,
    versions: [],
    group: '',
    result,
    resultCtype: 'int',
    parameters,
  }
}

/** The spec of such a library. It poses as the runtime's, which has the fewest rules for names. */
export function randomPrototypes(count: number, seed: number): LibrarySpecFile {
  const random = new Random(seed)
  return {
    format: 1,
    library: 'runtime',
    headerVersion: 13000,
    exports: { title: 'none', file: 'none', version: 13000 },
    headers: [],
    functions: Array.from({ length: count }, (_, index) => randomPrototype(index, random)),
    enums: [
      { name: 'memSigned', aliases: [], signed: true, members: [['memSignedZero', 0]] },
      { name: 'memUnsigned', aliases: [], signed: false, members: [['memUnsignedZero', 0]] },
    ],
    structs: [...structs],
    handles: [{ name: 'memHandle', ctype: 'struct memHandle *', brand: 'memHandle' }],
    callbacks: [],
    scalars: [],
    constants: [],
  }
}
