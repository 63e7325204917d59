// Compares the faults that a C program finds in this NCCL with the known faults that the conformance suite skips. Both
// lists must be the same.
import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { knownFault } from '@shoal/conformance'
import * as nccl from '@shoal/nccl-sys'
import { answersIn, withProgram } from './programs.mjs'

const jsonFile = process.argv[2] === '--json' ? process.argv[3] : undefined

/** Averages in windows: the program takes collective, op, dtype and count as numbers. */
const average = (collective, dtype, count) => [collective, 4, dtype, count]
const trialsThatMayEnd = [
  ...[6, 9, 7].flatMap((dtype) =>
    [0, 2].flatMap((collective) => [8, 1001, 131_154].map((count) => average(collective, dtype, count))),
  ),
  ...[1, 2, 4, 8, 10, 11].map((dtype) => average(0, dtype, 1001)),
]

if (process.env.SHOAL_DEVICE === 'sim')
  console.log('the software device has an NCCL of its own, which is right: nothing to ask')
else compare(await ask())

/** Runs the program. Its first line describes the host, each other line is one rank's result of one trial. */
function ask() {
  return withProgram('ncclFaults.c', async (program) => {
    const { path } = nccl.nccl.load()
    const run = spawnSync(program, [path], { encoding: 'utf8', maxBuffer: 1 << 26 })
    if (run.status !== 0) throw new Error(`the program ended with ${run.status ?? run.signal}: ${run.stderr}`)
    const [about, ...trials] = answersIn(run.stdout)
    if (about.devices >= 2 && about.windows) {
      // These run at the same time, because each must start NCCL anew.
      const single = await Promise.all(trialsThatMayEnd.map((words) => askOne(program, path, words)))
      trials.push(...single.flat())
    }
    return [about, ...trials]
  })
}

async function askOne(program, path, words) {
  const { stdout } = await promisify(execFile)(program, [path, ...words.map(String)], { timeout: 30_000 })
  return answersIn(stdout)
}

function compare([{ version, devices, windows }, ...trials]) {
  const faults = trials.filter(({ outcome }) => outcome !== 'right')
  const known = trials.filter((trial) => isKnown(trial, version))
  const unknown = faults.filter((trial) => !isKnown(trial, version))
  // If parts overwrite each other, the result is right when the right part is written last. So only plain memory counts
  // here.
  const missing = known.filter(({ outcome, memory }) => outcome === 'right' && memory === 'plain')
  const where = devices < 2 ? 'one rank' : windows ? 'one rank, and two with windows' : 'one rank, and two'
  console.log(
    `NCCL ${nccl.formatNcclVersion(version)}, ${where}: ${trials.length} results, ${faults.length} of them wrong or refused`,
  )
  const kinds = kindsOf(faults)
  for (const [kind, counts] of kinds) console.log(`${String(counts.length).padStart(5)} × ${kind}`)
  for (const trial of unknown.slice(0, 50)) console.log(`not known: ${JSON.stringify(trial)}`)
  for (const trial of missing.slice(0, 50)) console.log(`known, but right: ${JSON.stringify(trial)}`)
  if (jsonFile) {
    const figures = {
      version,
      devices,
      results: trials.length,
      known: known.length,
      faults: Object.fromEntries(kinds),
      unknown,
      missing,
    }
    writeFileSync(jsonFile, JSON.stringify(figures))
  }
  process.exitCode = unknown.length + missing.length === 0 ? 0 : 1
}

function isKnown({ collective, dtype, op, count, inPlace, ranks, memory }, version) {
  const trial = { collective, dtype, op: op ?? undefined, count, inPlace }
  return knownFault(trial, { version, worldSize: ranks, inWindow: memory === 'window' }) !== undefined
}

/** Returns each kind of fault with the counts that showed it, the most frequent kind first. */
function kindsOf(faults) {
  const kinds = new Map()
  for (const { collective, op, dtype, count, inPlace, ranks, memory, outcome, found, status } of faults) {
    const what = outcome === 'refused' ? `refused with ${status}` : `wrong, elements ${found}`
    const place = `${ranks} ranks, ${memory} memory${inPlace ? ', in place' : ''}`
    const name = `${collective}${op ? ` ${op}` : ''} of ${dtype}, ${place}: ${what}`
    kinds.set(name, [...(kinds.get(name) ?? []), count])
  }
  return [...kinds].sort(([, one], [, other]) => other.length - one.length)
}
