import { fileURLToPath } from 'node:url'
import { compileWithCuda } from '../compile.js'
import { SubjectProcess } from '../subjectProcess.js'
import { type Case, type Row, subjectIn, takeTurns } from '../turns.js'
import { inWords, type Sizes } from './sizes.js'

const script = fileURLToPath(new URL('exchangeChild.js', import.meta.url))

/** Measures exporting memory, sending it to another process, and importing and mapping it there. */
export async function measureExchange({ exchangeBytes, counts }: Sizes, rounds: number): Promise<Row[]> {
  const started = [
    await SubjectProcess.start('exchange.c', compileWithCuda('exchange.c'), [exchangeBytes]),
    await SubjectProcess.start('exchangeChild.js', process.execPath, [script, exchangeBytes]),
  ].map(([program]) => program)
  const title = `export, send to a process, import, map, ${inWords(exchangeBytes)}`
  const exchange: Case = { title, unit: 'µs', count: counts.exchange, loops: 1 }
  const subjects = started.map((program, index) =>
    subjectIn(program, index === 0 ? 'C' : 'driver', ['exchange'], (test, count) => `${test} ${count}`, 1000),
  )
  try {
    return await takeTurns({ exchange }, subjects, rounds)
  } finally {
    await Promise.all(started.map((program) => program.end()))
  }
}
