import type { CUstream } from '@shoal/cuda-sys/driver'
import type { Context } from '../../core/context/context.js'
import { releaseAfterFailure } from '../../core/lifetime.js'
import { Stream } from '../../core/stream/stream.js'

/** Memory that was made a moment ago. */
interface NewMemory {
  readonly context: Context
  dispose(): void
}

/** Writes to memory that nobody else knows yet, and waits for nobody's work but this. Disposes of it on failure. */
export function startWith(memory: NewMemory, write: (stream: CUstream) => void): void {
  try {
    write(transferStream(memory.context).handle)
  } catch (error) {
    releaseAfterFailure('Memory of a device', () => memory.dispose())
    throw error
  }
}

const transferStreams = new WeakMap<Context, Stream>()

/** A stream of our own for memory nobody else knows yet, so that making it waits for nobody's work. */
function transferStream(context: Context): Stream {
  let stream = transferStreams.get(context)
  if (stream === undefined) {
    stream = Stream._createHidden(context)
    transferStreams.set(context, stream)
  }
  return stream
}
