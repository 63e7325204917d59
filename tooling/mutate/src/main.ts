#!/usr/bin/env node
/** Puts small faults into a copy of the sources, one at a time, and runs the tests that could notice the fault. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Mutant, type Place, placeOf } from './mutant.js'
import { Random } from './random.js'
import { type Equivalent, isEquivalent, type Result, type Row, rowsIn, rowsOf, table } from './report.js'
import { Scratch, type Verdict } from './scratch.js'
import { allSubjects, draw, mutantsOf, type Subject } from './subjects.js'

const usage = `npm run mutate -- [--seed N] [--count N] [--json FILE] [SUBJECT or FILE …]
  SUBJECT      a package (driver, sim), a part of one (sim/nccl), or spec; all of them when none is named
  FILE         a source, by its path below the root
  --seed N     which faults are drawn; a new one when left out
  --count N    how many of each subject; default 10
  --json FILE  keeps the results; a run that finds the file goes on where it ended
  --again      with --json: tries what nothing noticed before, and draws no others
  --page FILE  adds the run to the table of this page, between its marks
  --list       prints the faults that would be tried`

const root = fileURLToPath(new URL('../../../', import.meta.url))
const equivalents = JSON.parse(readFileSync(join(root, 'tooling/mutate/equivalents.json'), 'utf8')) as Equivalent[]

function main(): number {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      count: { type: 'string', default: '10' },
      json: { type: 'string' },
      again: { type: 'boolean', default: false },
      page: { type: 'string' },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return 0
  }
  const seed = Number(values.seed ?? Date.now() % 1_000_000)
  const kept = values.json !== undefined && existsSync(values.json) ? readFileSync(values.json, 'utf8') : '[]'
  const results = JSON.parse(kept) as Result[]
  // Mutants are drawn from the copy, because they go into the copy and somebody may change the workspace meanwhile.
  using scratch = values.list ? undefined : new Scratch(root)
  const home = scratch?.root ?? root
  const drawn = chosen(positionals).map((subject): [Subject, Mutant[]] => [
    subject,
    values.again ? left(home, subject, results) : draw(home, subject, Number(values.count), new Random(seed)),
  ])
  console.log(`seed ${seed}, ${drawn.reduce((sum, [, mutants]) => sum + mutants.length, 0)} faults`)
  if (scratch !== undefined) console.log(`in ${scratch.root}, which is left where this is ended from outside`)
  if (!values.list) setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  for (const [subject, mutants] of drawn) {
    for (const mutant of mutants) {
      const place = placeOf(mutant, readFileSync(join(home, mutant.file), 'utf8'))
      const before = results.findIndex((one) => isSame(one, place))
      if (scratch === undefined)
        console.log(`${place.file}:${place.line}  ${mutant.kind}: ${place.change}  in  ${place.before}`)
      else if (before < 0 || values.again) {
        const judged = judge(scratch, subject, mutant)
        scratch.mend()
        const result = {
          subject: subject.name,
          seed,
          kind: mutant.kind,
          ...results[before],
          ...place,
          ...judged,
          isAgain: before >= 0,
        }
        results.splice(before < 0 ? results.length : before, 1, result)
        print(result)
        if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, undefined, 1)}\n`)
      }
    }
    if (mutants.length > 0) scratch?.build(subject)
  }
  if (values.list) return 0
  const rows = rowsOf(
    results.map((one) => (isEquivalent(one, equivalents) ? { ...one, outcome: 'equivalent' as const } : one)),
  )
  console.log(`\n${table(rows)}`)
  if (values.page !== undefined) writePage(values.page, rows)
  return rows.some(({ faults, noticed }) => noticed < faults) ? 1 : 0
}

const isSame = (one: Place, other: Place): boolean =>
  isEquivalent(one, [{ ...other, reason: '' }]) && one.line === other.line

/** Returns the mutants of a subject that survived the tests in earlier results. */
function left(home: string, { files }: Subject, results: readonly Result[]): Mutant[] {
  const survived = results.filter(({ outcome, file }) => outcome === 'survived' && files.includes(file))
  return [...new Set(survived.map(({ file }) => file))].flatMap((file) => {
    const text = readFileSync(join(home, file), 'utf8')
    const all = mutantsOf(home, file).flat()
    return all.filter((mutant) => survived.some((one) => isSame(one, placeOf(mutant, text))))
  })
}

/** Returns the subjects that the arguments name, each with the files that the arguments name. */
function chosen(names: readonly string[]): Subject[] {
  const all = allSubjects(root)
  if (names.length === 0) return all
  return names.flatMap((name) => {
    const whole = all.filter((subject) => subject.name === name || subject.name.startsWith(`${name}/`))
    if (whole.length > 0) return whole
    const part = all.find(({ files }) => files.includes(name))
    if (part === undefined) throw new Error(`no package and no source is called ${name}`)
    return [{ ...part, files: [name] }]
  })
}

function judge(scratch: Scratch, subject: Subject, mutant: Mutant): Pick<Result, 'outcome' | 'by'> {
  if (isEquivalent(placeOf(mutant, scratch.read(mutant.file)), equivalents)) return { outcome: 'equivalent' }
  // The compiler runs first, because a test of code that does not compile may use up its whole time limit.
  if (!scratch.compiles(mutant) || !scratch.build(subject, mutant)) return { outcome: 'unbuilt' }
  const verdicts: Verdict[] = []
  for (const folders of subject.tests) {
    const verdict = scratch.test(subject, folders, mutant)
    const { outcome, by } = verdict
    if (outcome !== undefined) return { outcome, ...(by === undefined ? {} : { by }) }
    verdicts.push(verdict)
  }
  // In this case no test could notice any fault, and every fault would count as survived.
  if (verdicts.every(({ isUnasked }) => isUnasked)) throw new Error(`the original passes no test of ${subject.name}`)
  return { outcome: 'survived' }
}

function print({ outcome, kind, file, line, change, before, by }: Result): void {
  const who = by === undefined ? '' : `\n          by ${by}`
  console.log(`${outcome.padEnd(10)}${file}:${line}  ${kind}: ${change}  in  ${before}${who}`)
}

/**
 * Adds rows to the table between the marks of a page. New rows replace only rows of the same run, so a run with a bad
 * score stays.
 */
function writePage(page: string, rows: readonly Row[]): void {
  const [from, to] = ['<!-- mutation -->', '<!-- /mutation -->']
  const text = existsSync(page) ? readFileSync(page, 'utf8') : `${from}\n${to}\n`
  const others = rowsIn(text.slice(text.indexOf(from), text.indexOf(to)))
  const all = new Map([...others, ...rows].map((row) => [`${row.seed} ${row.what}`, row]))
  const told = `All runs:\n\n${table([...all.values()])}`
  mkdirSync(dirname(page), { recursive: true })
  writeFileSync(
    page,
    text.replace(new RegExp(`${from}[\\s\\S]*${to}`), () => `${from}\n${told}\n${to}`),
  )
}

process.exitCode = main()
