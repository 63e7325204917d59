import type { Readable, Writable } from 'node:stream'

/** Longer lines are split, so that a rank without line ends cannot fill the memory. */
const longestLine = 2 ** 20
const newline = 0x0a

/**
 * Joins the output of many ranks in one stream, in whole lines.
 *
 * When the stream is full, the ranks wait as with a separate pipe.
 */
export class LineSink {
  readonly #stream: Writable
  readonly #sources = new Set<Readable>()
  #isBlocked = false
  /** True after a failed write. No `drain` follows, so the ranks must not wait. */
  #isBroken = false

  /** @param onBroken - called once when writing fails, usually because the reader is gone */
  constructor(stream: Writable, onBroken: (error: NodeJS.ErrnoException) => void) {
    this.#stream = stream
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#isBroken) return
      this.#isBroken = true
      this.#unblock()
      onBroken(error)
    })
    stream.on('drain', () => this.#unblock())
  }

  /** Whether the reader is slower than the ranks. */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  /** Copies all lines of a source, each with the prefix, until it ends. */
  take(source: Readable, prefix: string): void {
    const before = Buffer.from(prefix)
    let partial: Buffer[] = []
    let partialBytes = 0
    this.#sources.add(source)

    const flush = (end: Buffer): void => {
      this.#write(Buffer.concat([before, ...partial, end]))
      partial = []
      partialBytes = 0
    }
    source.on('data', (chunk: Buffer) => {
      const lines: Buffer[] = []
      let start = 0
      for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
        lines.push(before, ...partial, chunk.subarray(start, end + 1))
        partial = []
        partialBytes = 0
        start = end + 1
      }
      if (lines.length > 0) this.#write(Buffer.concat(lines))
      if (start === chunk.byteLength) return
      // A copy, because the piece may wait long and would keep the whole chunk in memory.
      partial.push(Buffer.from(chunk.subarray(start)))
      partialBytes += chunk.byteLength - start
      if (partialBytes >= longestLine) flush(Buffer.from('\n'))
    })
    source.once('close', () => {
      if (partialBytes > 0) flush(Buffer.from('\n'))
      this.#sources.delete(source)
    })
    source.on('error', () => undefined) // 'close' follows
    if (this.#isBlocked) source.pause()
  }

  #unblock(): void {
    this.#isBlocked = false
    for (const source of this.#sources) source.resume()
  }

  #write(bytes: Buffer): void {
    // The error may have occurred within the call.
    if (this.#isBroken || this.#stream.destroyed || this.#stream.write(bytes) || this.#isBroken) return
    this.#isBlocked = true
    for (const source of this.#sources) source.pause()
  }
}
