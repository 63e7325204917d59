// Compilations through @shoal/driver/compile, the counterpart of native/nvrtc.c:
// - `child.js serve` answers `first COUNT`, `memory COUNT`, `load COUNT`, `idle` and `together COUNT`.
// - `child.js once MODULE` prints the microseconds of one compilation that is cached on disk, or puts it there. With
//   MODULE 1, this includes loading its module.
import { Device, Module } from '@shoal/driver'
import { compile, Program } from '@shoal/driver/compile'
import { supportedArchitectures } from '@shoal/nvrtc'
import { measureDelay, sleep } from '../eventLoopRanks/delay.js'
import { answerRequests } from '../processes/serve.js'
import { source } from './source.js'

const device = Device.get(0)
// Creates the context, which the first call would otherwise pay for.
device.createStream().dispose()
const program = new Program(source)
let done = 0

async function microseconds(count: number, work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint()
  for (let index = 0; index < count; index += 1) await work()
  return Number(process.hrtime.bigint() - start) / 1000 / count
}

async function withModule(salt: number): Promise<void> {
  const module = await compile(device, source, { defines: { SALT: salt } })
  module.dispose()
}

/** `compile` without the part of the driver, which loads a module from the image. */
function alone(salt: number) {
  const { major, minor } = device.computeCapability
  const newest = supportedArchitectures().findLast((each) => each <= 10 * major + minor) as number
  const architecture = `${device.isSoftware ? 'compute' : 'sm'}_${newest}` as const
  return program.compile({ defines: { SALT: salt }, architecture })
}

async function answer(name: string, count: number): Promise<number | string> {
  if (name === 'first') return microseconds(count, () => withModule(++done))
  const { image } = await alone(0)
  if (name === 'memory') return microseconds(count, () => alone(0))
  if (name === 'load') return microseconds(count, async () => (await Module.load(device, image)).dispose())
  if (name === 'idle') return JSON.stringify(await measureDelay(() => sleep(1000)))
  const salts = Array.from({ length: count }, () => ++done)
  return JSON.stringify(await measureDelay(() => Promise.all(salts.map(alone))))
}

const [mode, wantsModule] = process.argv.slice(2)
if (mode === 'once') console.log(await microseconds(1, () => (wantsModule === '1' ? withModule(-1) : alone(-1))))
else await answerRequests('ready', ([name = '', count]) => answer(name, Number(count)))
process.exit()
