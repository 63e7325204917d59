// Kills or stops one of two PEs at several points. The other PE must report the loss in time, refuse calls that would
// hang, and end with its own exit status.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { nvshmemStatus, Session, UniqueId } from '@shoal/nvshmem'

const self = fileURLToPath(import.meta.url)
const timeout = 3000
const cases = {
  'killed before init': { timesOut: true },
  'killed in a barrier': {},
  'killed in a reduction': {},
  'killed before finalize': {},
  'hangs in a barrier': { timesOut: true },
  'hangs in a reduction': { timesOut: true },
  'hangs in finalize': { timesOut: true },
  'comes late to a barrier': { survives: true },
  'starts again after finalize': { refuses: true },
}

if (process.argv[2] === 'pe') await runPe(process.argv[3], Number(process.argv[4]))
else await runAll()

async function runAll() {
  let failed = 0
  for (const [name, expected] of Object.entries(cases)) {
    const from = performance.now()
    const survivor = await runCase(name)
    const seconds = ((performance.now() - from) / 1000).toFixed(1)
    const { code, signal, report, output } = survivor
    const isRight =
      signal === null &&
      code === 5 &&
      report !== undefined &&
      (expected.survives ? report.error === 'nothing' : true) &&
      (expected.refuses ? report.error === 'SHOAL_NVSHMEM_SESSION_EXISTS' : true) &&
      (expected.timesOut ? report.error === 'SHOAL_TIMEOUT' : true) &&
      report.took < timeout + 3000
    console.log(
      `${isRight ? 'passed' : 'FAILED'}  ${name}: ${JSON.stringify(report)}, exit ${signal ?? code} after ${seconds} s`,
    )
    if (isRight) continue
    failed += 1
    console.log(output.slice(-2000))
  }
  process.exitCode = failed === 0 ? 0 : 1
}

/** Runs PE 0 and PE 1. Returns how PE 0 ended. */
async function runCase(name) {
  const children = [0, 1].map((rank) =>
    fork(self, ['pe', name, String(rank)], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] }),
  )
  let report
  let output = ''
  for (const [rank, child] of children.entries()) {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => (output += `${rank}: ${text}`))
    }
    child.on('message', (message) => {
      if (message.report !== undefined) report = message.report
      else children[1 - rank].send(message, () => undefined)
    })
  }
  const closed = children.map((child) => new Promise((resolve) => child.once('close', resolve)))
  const late = setTimeout(() => children[0].kill('SIGKILL'), 45_000)
  const ended = await new Promise((resolve) => children[0].once('exit', (code, signal) => resolve({ code, signal })))
  clearTimeout(late)
  // A stopped process and its output end only by this signal.
  children[1].kill('SIGKILL')
  await Promise.all(closed)
  return { ...ended, report, output }
}

async function runPe(name, rank) {
  const id = await shareId(rank)
  const [, how, when] = /^(killed|hangs|comes late|starts again) (.*)$/.exec(name)
  const end = () => process.kill(process.pid, how === 'killed' ? 'SIGKILL' : 'SIGSTOP')
  const isLost = rank === 1 && (how === 'killed' || how === 'hangs')
  const options = { device: rank, rank, worldSize: 2, id }
  const from = performance.now()
  if (when === 'before init') {
    if (isLost) end()
    return report(from, Session.init({ ...options, timeout: timeout }))
  }
  const session = await Session.init({ ...options, timeout: 30_000 })
  const buffer = await session.allocate('f32', 1 << 20, { zeroed: true })
  await session.barrierAll({ timeout: 30_000 })
  if (isLost) end()
  if (how === 'comes late' && rank === 1) await new Promise((resolve) => setTimeout(resolve, timeout / 2))
  const start = performance.now()
  // The signal takes a moment to end the process.
  if (rank === 0 && how === 'killed') await new Promise((resolve) => setTimeout(resolve, 300))
  const wait = { timeout: timeout }
  if (when.endsWith('barrier')) return report(start, session.barrierAll(wait), session)
  if (when.endsWith('reduction')) return report(start, session.world.reduce(buffer, buffer, wait), session)
  if (when.endsWith('finalize') && how !== 'starts again') return report(start, session.finalize(wait), session)
  await buffer.dispose()
  await session.finalize()
  return report(start, Session.init({ ...options, timeout: 30_000 }), session)
}

/** Reports how a wait ended and which calls still work, then ends with a distinct exit status. */
async function report(from, wait, session) {
  const error = await wait.then(
    () => 'nothing',
    (reason) => reason.code ?? reason.name,
  )
  const took = Math.round(performance.now() - from)
  const stuckIn = session?.stuckIn
  const after =
    session === undefined || session.disposed
      ? undefined
      : await session.quiet({ timeout: 1000 }).then(
          () => 'works',
          (reason) => reason.code ?? reason.name,
        )
  const status = session === undefined ? undefined : nvshmemStatus()
  await new Promise((resolve) => process.send({ report: { error, took, stuckIn, after, status } }, resolve))
  session?.abandon()
  process.disconnect()
  process.exitCode = 5
}

async function shareId(rank) {
  if (rank === 1) return new Promise((resolve) => process.once('message', ({ id }) => resolve(UniqueId.fromBase64(id))))
  const id = UniqueId.create()
  process.send({ id: id.toString() })
  return id
}
