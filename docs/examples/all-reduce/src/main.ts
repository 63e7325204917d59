import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { chooseDevices, prepareSoftwareDevice } from './chooseDevice.js'
import { describeError } from './failure.js'
import { rankVariable } from './messages.js'
import { runOneProcess } from './oneProcess.js'
import { type Options, readOptions, UsageError, usage } from './options.js'
import { runRank } from './rank.js'
import { runRanks } from './ranks.js'
import { printReport } from './report.js'

const main = fileURLToPath(import.meta.url)
const commandLine = process.argv.slice(2)

async function run(): Promise<number> {
  const options = readOptions(commandLine)
  if (options.help) {
    console.log(usage)
    return 0
  }
  const expectGpu = process.env['SHOAL_EXPECT_GPU'] === '1'
  if (options.device === 'sim') {
    if (expectGpu) throw new UsageError('SHOAL_EXPECT_GPU=1 and --device sim contradict each other')
    prepareSoftwareDevice(options)
  }
  const [rank, ranks] = (process.env[rankVariable] ?? '').split('/').map(Number)
  if (rank !== undefined && ranks !== undefined) {
    await runRank(rank, ranks, options)
    return Number(process.exitCode ?? 0)
  }
  const software = process.env['SHOAL_DEVICE'] === 'sim'
  if (software && (expectGpu || options.device === 'gpu')) {
    throw new UsageError('SHOAL_DEVICE=sim is set, and a GPU is asked for')
  }
  const choice = chooseDevices(options)
  if ('noGpu' in choice) return await withoutGpu(choice.noGpu, expectGpu || options.device === 'gpu')
  return printReport(await allReduce(choice.devices, options)) ? 0 : 1
}

function allReduce(devices: Parameters<typeof runOneProcess>[0], options: Options) {
  if (options.ranks === undefined) return runOneProcess(devices, options)
  return runRanks(options.ranks, main, commandLine, options)
}

/** Does it all again on the software device, in a new process: this one has looked for the real libraries already. */
function withoutGpu(reason: string, gpuAskedFor: boolean): Promise<number> {
  if (gpuAskedFor) throw new UsageError(`a GPU was asked for, and ${reason}`)
  console.log(
    `NO GPU: ${reason}. Using the SOFTWARE DEVICE instead: this CPU does the work, the times say nothing about a GPU.`,
  )
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...commandLine, '--device', 'sim'], { stdio: 'inherit' })
    const pass = (signal: NodeJS.Signals): void => void child.kill(signal)
    process.on('SIGINT', pass).on('SIGTERM', pass).on('SIGHUP', pass)
    process.once('exit', () => child.kill('SIGKILL'))
    child.once('error', reject)
    child.once('close', (code) => resolve(code ?? 2))
  })
}

run().then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    const verbose = commandLine.includes('--verbose') && !(error instanceof UsageError)
    console.error(`all-reduce: ${error instanceof UsageError ? error.message : describeError(error, verbose)}`)
    process.exitCode = 2
  },
)
