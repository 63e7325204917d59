import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { DescriptorSocket, type Device, PhysicalMemory, sendHandle } from '@shoal/driver'
import { compileWithCuda } from '../compile.js'
import { SubjectProcess } from '../subjectProcess.js'
import { type Case, type Row, type Subject, takeTurns } from '../turns.js'
import { inWords, type Sizes } from './sizes.js'

const childScript = fileURLToPath(new URL('exchangeChild.js', import.meta.url))
const waiting = { timeout: 60_000 }

/** Measures memory that is exported, sent to another process, and imported and mapped there. */
export async function measureExchange(
  device: Device,
  { exchangeBytes, counts }: Sizes,
  rounds: number,
): Promise<Row[]> {
  const [c] = await SubjectProcess.start('exchange.c', compileWithCuda('exchange.c'), [exchangeBytes])
  const node = await startNode(device, exchangeBytes)
  try {
    const cases: Record<string, Case> = {
      exchange: {
        title: `export, send to a process, import, map, ${inWords(exchangeBytes)}`,
        unit: 'µs',
        count: counts.exchange,
        loops: 1,
      },
    }
    const subjects: Subject[] = [
      { name: 'C', cases: ['exchange'], measure: async (_, count) => (await c.measure(`exchange ${count}`)) / 1000 },
      { name: 'driver', cases: ['exchange'], measure: (_, count) => node.exchange(count) },
    ]
    return await takeTurns(cases, subjects, rounds)
  } finally {
    c.close()
    await node.close()
  }
}

interface NodePair {
  /** Microseconds of one. */
  exchange(count: number): Promise<number>
  close(): Promise<void>
}

async function startNode(device: Device, bytes: number): Promise<NodePair> {
  const [socket, other] = DescriptorSocket.pair()
  // `ipc` takes number 3.
  const child = fork(childScript, [String(bytes)], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc', other.descriptor],
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  other.dispose()
  const memory = PhysicalMemory.create(device, bytes, { handleTypes: 'posix-fd' })
  await socket.receive(waiting)
  return {
    async exchange(count) {
      let milliseconds = 0
      for (let i = 0; i < count; i += 1) {
        const start = performance.now()
        const handle = memory.export()
        await sendHandle(socket, handle, waiting)
        handle.dispose()
        await socket.receive(waiting)
        milliseconds += performance.now() - start
        await socket.receive(waiting)
      }
      return (milliseconds * 1000) / count
    },
    async close() {
      memory.dispose()
      socket.dispose()
      if (child.connected) child.disconnect()
      await ended
    },
  }
}
