import { randomBytes } from 'node:crypto'
import { type Device, GrowableBuffer } from '@shoal/driver'
import { startNodeSubjects } from '../nodeSubjects.js'
import type { SubjectProcess } from '../subjectProcess.js'
import { type Case, type Row, type Subject, subjectIn, takeTurns } from '../turns.js'
import { inWords, type Sizes } from './sizes.js'

/** Measures mapping and growing. `c` is the process of native/memory.c. */
export async function measureMapping(
  device: Device,
  c: SubjectProcess,
  sizes: Sizes,
  rounds: number,
): Promise<{ rows: Row[]; isIntact: boolean }> {
  const { mapBytes, stepBytes, steps, counts } = sizes
  const mapped = `create, map, set access, ${inWords(mapBytes)}`
  const grown = `${inWords(stepBytes * steps)} in steps of ${inWords(stepBytes)}`
  const mapping = { unit: 'µs', count: counts.map, loops: 3 }
  const growing = { ...mapping, count: counts.grow }
  const cases: Record<string, Case> = {
    map: { ...mapping, title: `${mapped}, wait, unmap, release` },
    mapWithoutWait: { ...mapping, title: `${mapped}, unmap, release` },
    grow: { ...growing, title: `growable buffer, ${grown}` },
    release: { ...growing, title: `released, ${grown}` },
    growByCopy: { ...growing, title: `allocated anew and copied, ${grown}` },
  }
  const ours = await startNodeSubjects(new URL('mappingSubjects.js', import.meta.url), [mapBytes, stepBytes, steps])
  const subjects: Subject[] = [
    subjectIn(c, 'C', Object.keys(cases), (test, count) => `${test} ${count}`, 1000),
    ...ours.subjects,
  ]
  const isIntact = staysInPlace(device, sizes)
  const rows = await takeTurns(cases, subjects, rounds)
  ours.close()
  return { rows, isIntact }
}

/** True if a buffer keeps its address and the contents of its first step when it grows. */
function staysInPlace(device: Device, { stepBytes, steps }: Sizes): boolean {
  const buffer = GrowableBuffer.reserve(device, 'u8', {
    maximumLength: stepBytes * steps,
    stepBytes,
    length: stepBytes,
  })
  try {
    const { address } = buffer
    const contents = new Uint8Array(randomBytes(stepBytes))
    buffer.buffer.copyFromSync(contents)
    for (let step = 2; step <= steps; step += 1) buffer.resize(step * stepBytes)
    // Also writes to the new part, to detect a mapping of the wrong memory.
    buffer.buffer.slice(stepBytes).fillSync(0x5a)
    const found = buffer.buffer.slice(0, stepBytes).toArraySync()
    return buffer.address === address && Buffer.compare(found, contents) === 0
  } finally {
    buffer.dispose()
  }
}
