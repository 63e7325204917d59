// One PE: `shoal run -n 2 dist/kernel.js`. The kernel itself puts into the memory of the next PE.
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DeviceBuffer } from '@shoal/driver'
import { buildKernel, loadKernel } from './buildKernel.js'
import { startPe } from './start.js'

const elements = 10_007
const { job, device, session } = await startPe()
const { pe } = session

const path = await job.share('kernel', async () => Buffer.from(await buildKernel(device)), { timeout: 120_000 })
const file = Buffer.from(path).toString()
using module = await loadKernel(device, file)
await session.deviceCode.initializeModule(module)
const put = module.kernel('put_to_neighbour', ['ptr', 'ptr', 'i32'])
const check = module.kernel('check_arrival', ['ptr', 'ptr', 'i32', 'ptr'])

using stream = device.createStream()
using wrong = DeviceBuffer.zeros(device, 'i32', 1)
const target = await session.allocate('i32', elements, { zeroed: true })
const arrived = await session.allocate('u64', 1, { zeroed: true })
await session.barrierAll()

put.launch({ grid: 1, block: 256, stream }, target, arrived, elements)
check.launch({ grid: 1, block: 256, stream }, target, arrived, elements, wrong)
const [count] = await wrong.toArray({ stream })
console.log(`PE ${pe}: ${elements} elements from the kernel of the PE to the left, ${count} wrong`)
if (count !== 0) process.exitCode = 1

await session.barrierAll()
await session.deviceCode.finalizeModule(module)
await arrived.dispose()
await target.dispose()
await session.finalize()
if (job.rank === 0) await rm(dirname(file), { recursive: true })
await job.dispose()
