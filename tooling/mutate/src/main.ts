#!/usr/bin/env node
/** Puts small faults into a copy of the sources, one at a time, and runs the tests that could notice. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type Mutant, placeOf } from './mutant.js'
import { Random } from './random.js'
import { type Equivalent, isEquivalent, type Result, table } from './report.js'
import { Scratch } from './scratch.js'
import { allSubjects, draw, type Subject } from './subjects.js'

const usage = `npm run mutate -- [--seed N] [--count N] [--json FILE] [SUBJECT or FILE …]
  SUBJECT      a package (driver, sim), a part of one (sim/nccl), or spec; all of them when none is named
  FILE         a source, by its path below the root
  --seed N     which faults are drawn; a new one when left out
  --count N    how many of each subject; default 10
  --json FILE  keeps the results; a run that finds the file goes on where it ended
  --page FILE  writes the table into this page, between its marks
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
  // The copy is what is broken, also when somebody works on the sources meanwhile.
  using scratch = values.list ? undefined : new Scratch(root)
  const drawn = chosen(positionals).map((subject): [Subject, Mutant[]] => [
    subject,
    draw(scratch?.root ?? root, subject, Number(values.count), new Random(seed)),
  ])
  console.log(`seed ${seed}, ${drawn.reduce((sum, [, mutants]) => sum + mutants.length, 0)} faults`)
  if (scratch !== undefined) console.log(`in ${scratch.root}, which is left where this is ended from outside`)
  const kept = values.json !== undefined && existsSync(values.json) ? readFileSync(values.json, 'utf8') : '[]'
  const results = JSON.parse(kept) as Result[]
  if (!values.list) setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  for (const [subject, mutants] of drawn) {
    for (const mutant of mutants) {
      const place = placeOf(mutant, scratch?.read(mutant.file) ?? readFileSync(join(root, mutant.file), 'utf8'))
      const same = (one: Result): boolean => isEquivalent(one, [{ ...place, reason: '' }]) && one.line === place.line
      if (scratch === undefined) console.log(`${place.file}:${place.line}  ${place.change}  in  ${place.before}`)
      else if (!results.some(same)) {
        const result = { subject: subject.name, ...place, ...judge(scratch, subject, mutant) }
        scratch.mend()
        results.push(result)
        print(result)
        if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, undefined, 1)}\n`)
      }
    }
    scratch?.build(subject)
  }
  const final = results.map((one) =>
    isEquivalent(one, equivalents) ? { ...one, outcome: 'equivalent' as const } : one,
  )
  if (values.list) return 0
  console.log(`\n${table(final)}`)
  if (values.page !== undefined) writePage(values.page, seed, Number(values.count), final)
  return final.some(({ outcome }) => outcome === 'survived') ? 1 : 0
}

/** The subjects that the arguments name, each with the files that they name. */
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
  const place = placeOf(mutant, scratch.read(mutant.file))
  if (isEquivalent(place, equivalents)) return { outcome: 'equivalent' }
  let isBuilt = false
  for (const folders of subject.tests) {
    if (!scratch.knows(folders)) {
      scratch.build(subject)
      scratch.learn(folders)
      isBuilt = false
    }
    if (!isBuilt && !scratch.build(subject, mutant)) return { outcome: 'unbuilt' }
    isBuilt = true
    const { outcome, by } = scratch.test(folders, mutant)
    if (outcome === 'timeout') {
      // Where other work has made the machine slow, the original would not have been in time either.
      scratch.build(subject)
      const original = scratch.test(folders, mutant)
      return { outcome: original.outcome === 'passed' && original.share < 0.5 ? 'late' : 'unclear' }
    }
    if (outcome === 'failed') return { outcome: 'noticed', ...(by === undefined ? {} : { by }) }
  }
  return { outcome: scratch.compiles(mutant) ? 'survived' : 'unbuilt' }
}

function print({ outcome, file, line, change, before, by }: Result): void {
  const who = by === undefined ? '' : `\n          by ${by}`
  console.log(`${outcome.padEnd(10)}${file}:${line}  ${change}  in  ${before}${who}`)
}

/** Puts the table, with what it was made from, between the marks of a page. */
function writePage(page: string, seed: number, count: number, results: readonly Result[]): void {
  const [from, to] = ['<!-- mutation -->', '<!-- /mutation -->']
  const text = existsSync(page) ? readFileSync(page, 'utf8') : `${from}\n${to}\n`
  const date = new Date().toISOString().slice(0, 10)
  const told = `${date}, seed ${seed}, up to ${count} faults of each part:\n\n${table(results)}`
  mkdirSync(dirname(page), { recursive: true })
  writeFileSync(
    page,
    text.replace(new RegExp(`${from}[\\s\\S]*${to}`), () => `${from}\n${told}\n${to}`),
  )
}

process.exitCode = main()
