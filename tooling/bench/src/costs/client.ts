// Started by server.ts. Sends the server one request after the other, about 500 per second, and reports their
// durations.
import { Agent, get } from 'node:http'
import { sleep } from '../eventLoopRanks/delay.js'

const [port] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const times: number[] = []
let isOver = false

function request(): Promise<number> {
  const start = performance.now()
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, agent }, (response) => {
      response.resume().on('end', () => resolve(performance.now() - start))
    }).on('error', reject)
  })
}

async function ask(): Promise<void> {
  while (!isOver) {
    times.push(await request())
    await sleep(1)
  }
  process.send?.(times, () => process.exit())
}

process.on('message', (word) => {
  if (word === 'begin') ask()
  else isOver = true
})
// Warm up first, so that V8 has compiled the code.
for (let i = 0; i < 200; i += 1) await request()
process.send?.('ready')
