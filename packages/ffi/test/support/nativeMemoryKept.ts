import { NativeMemory } from '@shoal/ffi'

/** Does some work, and tells the bytes of each piece of native memory that it took and has not given back. */
export async function nativeMemoryKept(work: () => unknown): Promise<number[]> {
  const allocate = NativeMemory.allocate
  const taken: NativeMemory[] = []
  NativeMemory.allocate = (byteLength) => {
    const memory = allocate.call(NativeMemory, byteLength)
    taken.push(memory)
    return memory
  }
  try {
    await work()
  } finally {
    NativeMemory.allocate = allocate
  }
  return taken.filter(({ disposed }) => !disposed).map(({ byteLength }) => byteLength)
}
