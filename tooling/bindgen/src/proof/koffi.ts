// The same calls through koffi, with prototypes from the same spec: a second opinion on how values are passed.

import type { FunctionSpec, Lowered, StructSpec } from '../spec/types.js'
import { structsByName } from './abi.js'
import { callOnce, fail, type Session, wantedSymbol } from './engines.js'
import { type Koffi, koffiOf, type NativeMemory } from './packages.js'
import { cName, readScalar, type ScalarKind, scalarKind, writeScalar } from './scalars.js'
import type { Round, Value } from './values.js'

const rounds: readonly Round[] = ['memory', 'random', 'highest', 'lowest', 'mixed']

class Types {
  readonly #koffi: Koffi
  readonly #structs: ReadonlyMap<string, StructSpec>
  readonly #known = new Map<string, unknown>()

  constructor(koffi: Koffi, structs: ReadonlyMap<string, StructSpec>) {
    this.#koffi = koffi
    this.#structs = structs
  }

  of(lowered: Lowered): unknown {
    if (lowered.kind === 'void') return 'void'
    if (lowered.kind === 'struct') return this.struct(lowered)
    return isWord(lowered) ? 'void *' : cName(scalarKind(lowered))
  }

  /** A struct as words of its alignment, which are passed like its integer members. */
  struct({ type, size, alignment }: { type: string; size: number; alignment: number }): unknown {
    const known = this.#known.get(type)
    if (known !== undefined) return known
    if (this.#structs.get(type) === undefined) throw new Error(`${type} is not in the spec`)
    const made = this.#koffi.struct(type, { words: this.#koffi.array(cName(wordKind(alignment)), size / alignment) })
    this.#known.set(type, made)
    return made
  }
}

/** True if a value is an address or is passed like one. */
function isWord({ kind }: Lowered): boolean {
  return ['handle', 'deviceptr', 'callback', 'pointer', 'cstring'].includes(kind)
}

/** The kind of the words that represent a struct with this alignment. */
const wordKind = (alignment: number): ScalarKind => `u${8 * alignment}` as ScalarKind

function structWords(bytes: Uint8Array, alignment: number): unknown[] {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const count = bytes.length / alignment
  return Array.from({ length: count }, (_, index) => readScalar(data, index * alignment, wordKind(alignment)))
}

/** Converts a value for koffi. */
function toKoffi(value: Value, lowered: Lowered, kept: unknown[]): unknown {
  if (lowered.kind === 'struct') return { words: structWords(value.bytes(), lowered.alignment) }
  if (lowered.kind === 'pointer' && typeof value.js === 'object' && value.js !== null) {
    const address = (value.js as Partial<NativeMemory>).address
    return address ?? (value.js instanceof SharedArrayBuffer ? new Uint8Array(value.js) : value.js)
  }
  if (typeof value.js === 'string') {
    // Passed as bytes, because koffi accepts no text for `void *`.
    const bytes = Buffer.from(`${value.js}\0`, 'utf8')
    kept.push(bytes)
    return bytes
  }
  return value.js
}

function fromKoffi(entry: FunctionSpec, session: Session, returned: unknown): unknown {
  const { result } = entry
  if (isWord(result)) return returned === null ? 0n : returned
  if (result.kind === 'struct') {
    const { words } = returned as { words: ArrayLike<number | bigint> }
    const bytes = new Uint8Array(result.size)
    const data = new DataView(bytes.buffer)
    for (const [index, word] of Array.from(words).entries())
      writeScalar(data, index * result.alignment, wordKind(result.alignment), word)
    return (session.sys.exports[result.type] as { read(bytes: Uint8Array): unknown }).read(bytes)
  }
  return ['i64', 'u64'].includes(scalarKind(result)) && result.kind !== 'void' ? BigInt(returned as number) : returned
}

/** Calls every function by its exported symbol. */
export function runKoffi(session: Session): void {
  const { job, report } = session
  const koffi = koffiOf(job)
  const library = koffi.load(job.recorder)
  const types = new Types(koffi, structsByName(job.spec))
  for (const entry of job.spec.functions) {
    const parameters = entry.parameters.map(({ lowered }) => types.of(lowered))
    let call: (...values: unknown[]) => unknown
    try {
      call = library.func(wantedSymbol(job, entry), types.of(entry.result), parameters)
    } catch (error) {
      fail(session, entry, 'koffi', String(error))
      continue
    }
    for (const round of rounds) {
      const kept: unknown[] = []
      callOnce(session, entry, round, false, (values) =>
        fromKoffi(
          entry,
          session,
          call(
            ...values.map((value, index) =>
              toKoffi(value, (entry.parameters[index] as { lowered: Lowered }).lowered, kept),
            ),
          ),
        ),
      )
    }
    report.functions.push(entry.name)
  }
}
