/** A range of addresses: where it starts, and where it is over. Addresses of devices are safe integers. */
interface Span {
  readonly start: number
  readonly end: number
}

/**
 * What this process knows of the addresses of its heap: where there is memory, and what of it is taken. Below the first
 * allocation lies what NVSHMEM has for itself.
 */
export class HeapSpace {
  /** Memory that is mapped, by address, none of it twice. */
  #mapped: Span[] = []
  /** Allocations that live: their sizes by address. */
  readonly #taken = new Map<number, number>()
  #lowest = Number.POSITIVE_INFINITY

  /** Bytes of memory that the heap is known to have. */
  get mappedBytes(): number {
    return this.#mapped.reduce((sum, { start, end }) => sum + end - start, 0)
  }

  get isKnown(): boolean {
    return this.#mapped.length > 0
  }

  /** @param mappingAt the mapping in which an address lies, undefined where that is not known. */
  add(address: number, bytes: number, mappingAt: (address: number) => Span | undefined): void {
    this.#taken.set(address, bytes)
    this.#lowest = Math.min(this.#lowest, address)
    for (let at = address; at < address + bytes; ) {
      const known = this.#mapped.find(({ start, end }) => at >= start && at < end) ?? mappingAt(at)
      if (known === undefined || known.end <= at) return
      if (!this.#mapped.some(({ start }) => start === known.start)) {
        this.#mapped = [...this.#mapped, known].sort((left, right) => left.start - right.start)
      }
      at = known.end
    }
  }

  remove(address: number): void {
    this.#taken.delete(address)
  }

  /** The largest number of bytes side by side that are there and not taken. */
  largestFree(): number {
    const taken = [...this.#taken].sort(([left], [right]) => left - right)
    let largest = 0
    for (const { start, end } of this.#connected()) {
      let at = Math.max(start, this.#lowest)
      for (const [address, bytes] of taken) {
        if (address < at || address >= end) continue
        largest = Math.max(largest, address - at)
        at = address + bytes
      }
      largest = Math.max(largest, end - at)
    }
    return largest
  }

  /** The heap grows where it ends, so mappings follow each other. */
  #connected(): Span[] {
    const joined: Span[] = []
    for (const span of this.#mapped) {
      const last = joined.at(-1)
      if (last?.end === span.start) joined[joined.length - 1] = { start: last.start, end: span.end }
      else joined.push(span)
    }
    return joined
  }
}
