import { NativeMemory } from '@shoal/ffi'
import { requireList } from '@shoal/types'

/** Reads an attribute's value from the memory that the driver wrote. */
export type Reader<T> = (view: DataView) => T

export const readFlag = (view: DataView): boolean => view.getInt32(0, true) !== 0
export const readWord = (view: DataView): bigint => view.getBigUint64(0, true)
export const readSize = (view: DataView): number => Number(view.getBigUint64(0, true))
export const readOrdinal = (view: DataView): number => view.getInt32(0, true)

/** Returns unique attribute names. @throws TypeError */
export function requireNames<A>(attributes: readonly A[], api: string): A[] {
  return [...new Set(requireList(attributes, api, 'attributes', 'a list of names'))]
}

/** Codes of attributes, cells for their results, and pointers to the cells. */
export class ResultCells {
  readonly codes: Uint32Array
  readonly pointers: BigUint64Array
  readonly #memory: NativeMemory
  readonly #offsets: readonly number[]
  readonly #sizes: readonly number[]

  constructor(codes: readonly number[], sizes: readonly number[]) {
    let end = 0
    this.#offsets = sizes.map((size) => {
      const start = end
      end += Math.ceil(size / 16) * 16
      return start
    })
    this.#sizes = sizes
    this.#memory = NativeMemory.allocate(Math.max(end, 16))
    this.codes = Uint32Array.from(codes)
    this.pointers = BigUint64Array.from(this.#offsets, (offset) => this.#memory.address + BigInt(offset))
  }

  collect<All, A extends keyof All>(
    names: readonly A[],
    by: { readonly [Name in keyof All]: Reader<All[Name]> },
  ): Pick<All, A> {
    const { buffer } = this.#memory
    const entries = names.map((name, index) => {
      return [name, by[name](new DataView(buffer, this.#offsets[index], this.#sizes[index]))] as const
    })
    return Object.fromEntries(entries) as Pick<All, A>
  }
}
