import { Script } from 'node:vm'

// Declarations as a raw package has them, 430 KB.
const source = Array.from({ length: 2000 }, (_, index) => {
  const name = `call_${index}`
  const puts = ['first', 'second', 'third'].map((each, at) => `put(${at},${each},'${name}','${each}',8);`).join('\n')
  return `let ${name}_;\nfunction ${name}(first,second,third){\n${puts}\n(${name}_??=bind('${name}',30006,4,'void'))()}`
}).join('\n')

/** Milliseconds of the processor that this process takes for `work`. */
export async function processorTime(work) {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

/**
 * What this process takes to read 430 KB of declarations: how fast the machine is, and what runs beside it, changes
 * that as it changes imports.
 */
export const readingTime = () => processorTime(() => new Script(source))
