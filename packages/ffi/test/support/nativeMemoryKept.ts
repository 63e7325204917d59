import { NativeMemory } from '@shoal/ffi'

/** Runs some work. Returns the size in bytes of each piece of native memory that it has allocated and not freed. */
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
