// Compares the faults that nvshmemFaults.c finds in this NVSHMEM with the faults that the package prevents. Both lists
// must be the same.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { driver } from '@shoal/cuda-sys/driver'
import { Device } from '@shoal/driver'
import { nvshmem } from '@shoal/nvshmem-sys'
import { answersIn, withProgram } from './programs.mjs'

const jsonFile = process.argv[2] === '--json' ? process.argv[3] : undefined

// NVSHMEM's default sizes, in bytes.
const scratch = 512 * 1024
const round = scratch / 16

if (process.env.SHOAL_DEVICE === 'sim')
  console.log('the software device has an NVSHMEM of its own, which is right: nothing to ask')
else await withProgram('nvshmemFaults.c', ask)

function ask(program) {
  const most = Math.min(4, Device.count)
  const answers = []
  for (let pes = 2; pes <= most; pes += 1) {
    const { NVSHMEM_REDUCE_SCRATCH_SIZE: _, ...environment } = process.env
    const words = [driver.load().path, nvshmem.load().path, String(pes)]
    const run = spawnSync(program, words, { encoding: 'utf8', maxBuffer: 1 << 26, env: environment })
    if (run.status !== 0) throw new Error(`the program ended with ${run.status ?? run.signal}: ${run.stderr}`)
    answers.push(...answersIn(run.stdout))
  }
  check(answers)
}

function check(answers) {
  const asked = (question) => answers.filter((answer) => answer.question === question)
  const reductions = asked('reduce').map((answer) => ({
    ...answer,
    known: isBeyondRound(answer),
    isWrong: isWrong(answer),
  }))
  const scatters = asked('reduceScatter').map((answer) => ({
    ...answer,
    known: hasNoRoom(answer),
    // Parts of other PEs may change up to half of the scratch area. The PE's own part stays in place.
    isWrong: answer.wrong > 0 || answer.status !== 0 || answer.changed > scratch / 2,
  }))
  const afterwards = asked('afterwards').map((answer) => ({
    ...answer,
    known: hasNoRoom(answer),
    isWrong: answer.wrong + answer.wrongLarge > 0,
  }))
  const all = [...reductions, ...scatters, ...afterwards]
  const unknown = all.filter(({ known, isWrong }) => isWrong && !known)
  // A known kind of fault makes some results wrong, not all.
  const kinds = [
    ['reduce in place beyond a round', reductions],
    ['reduceScatter without room: writes beyond it', scatters],
    ['other collectives after a reduceScatter without room', afterwards],
  ].map(([kind, list]) => {
    const known = list.filter((answer) => answer.known)
    return { kind, known: known.length, wrong: known.filter((answer) => answer.isWrong).length }
  })
  const fixed = kinds.filter(({ known, wrong }) => known > 0 && wrong === 0)
  console.log(`NVSHMEM, up to ${Math.max(...all.map(({ pes }) => pes))} PEs: ${all.length} answers`)
  for (const { kind, known, wrong } of kinds) console.log(`  ${kind}: ${wrong} of ${known} wrong`)
  for (const { rounds, wrong, bytes, pes, pe } of afterwards.filter(({ isWrong }) => isWrong))
    console.log(`  ${pes} PEs, PE ${pe}: ${wrong} of ${rounds} small ones wrong after parts of ${bytes} bytes`)
  for (const answer of unknown.slice(0, 50)) console.log(`not known: ${JSON.stringify(answer)}`)
  for (const { kind } of fixed) console.log(`known, but right: ${kind}`)
  if (jsonFile) writeFileSync(jsonFile, JSON.stringify({ answers: all.length, kinds, unknown, fixed }))
  process.exitCode = unknown.length + fixed.length === 0 ? 0 : 1
}

function isBeyondRound({ pes, bytes, inPlace }) {
  return inPlace && pes > 2 && bytes * (pes - 1) > round
}

function hasNoRoom({ pes, bytes }) {
  return bytes * pes > scratch / 2
}

function isWrong({ wrong, beside, status }) {
  return wrong > 0 || beside > 0 || status !== 0
}
