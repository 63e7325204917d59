import { Script } from 'node:vm'

// 430 KB of declarations, like those of a raw package.
const source = Array.from({ length: 2000 }, (_, index) => {
  const name = `call_${index}`
  const puts = ['first', 'second', 'third'].map((each, at) => `put(${at},${each},'${name}','${each}',8);`).join('\n')
  return `let ${name}_;\nfunction ${name}(first,second,third){\n${puts}\n(${name}_??=bind('${name}',30006,4,'void'))()}`
}).join('\n')

/** Returns the processor time of `work` in this process, in milliseconds. */
export async function processorTime(work) {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

/**
 * Returns the processor time to parse 430 KB of declarations, in milliseconds. The speed of the machine and other
 * programs change this time in the same proportion as the time of an import.
 */
export const readingTime = () => processorTime(() => new Script(source))
