/** A range of addresses from start to end. Device addresses are safe integers. */
interface Span {
  readonly start: number
  readonly end: number
}

/**
 * Known addresses of the heap of this process: mapped memory and allocations.
 *
 * NVSHMEM's own memory lies below the first allocation.
 */
export class HeapSpace {
  /** Mapped memory by address, without duplicates. */
  #mapped: Span[] = []
  /** Live allocations: size by address. */
  readonly #taken = new Map<number, number>()
  #lowest = Number.POSITIVE_INFINITY

  /** Bytes of known mapped memory. */
  get mappedBytes(): number {
    return this.#mapped.reduce((sum, { start, end }) => sum + end - start, 0)
  }

  get isKnown(): boolean {
    return this.#mapped.length > 0
  }

  /**
   * Records an allocation.
   *
   * @param mappingAt returns the mapping of an address; undefined if unknown.
   */
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

  /** Returns the largest contiguous free range in bytes. */
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

  /** Joins adjacent mappings: the heap grows at its end. */
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
