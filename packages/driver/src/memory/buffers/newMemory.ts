import type { CUstream } from '@shoal/cuda-sys/driver'
import type { Context } from '../../core/context/context.js'
import { releaseAfterFailure } from '../../core/lifetime.js'
import { Stream } from '../../core/stream/stream.js'

/** Memory that was just allocated. */
interface NewMemory {
  readonly context: Context
  dispose(): void
}

/** Writes to new memory and waits only for this write. Disposes of the memory on failure. */
export function startWith(memory: NewMemory, write: (stream: CUstream) => void): void {
  try {
    write(transferStream(memory.context).handle)
  } catch (error) {
    releaseAfterFailure('Memory of a device', () => memory.dispose())
    throw error
  }
}

const transferStreams = new WeakMap<Context, Stream>()

/** Returns an internal stream for new memory, so that creating memory waits for no other work. */
function transferStream(context: Context): Stream {
  let stream = transferStreams.get(context)
  if (stream === undefined) {
    stream = Stream._createHidden(context)
    transferStreams.set(context, stream)
  }
  return stream
}
