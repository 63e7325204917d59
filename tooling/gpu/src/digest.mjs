// Reduces a job's result to the figures that the pages of docs/hardware show, and the names that tests look up.

/** Returns the digest of a job's `data` and `output`. It has only the fields that the job has. */
export function digestOf({ name, data = {}, output = '' }) {
  const { cases, bars, results } = data
  return {
    summary: summaryOf(data, output),
    bars: bars?.map(({ what, value, limit, unit, side, met, ofCAgain }) => {
      return { what, value: rounded(value), limit, unit, side, met, ofCAgain: rounded(ofCAgain) }
    }),
    cases: cases && casesOf(cases, name.startsWith('conformance')),
    figures: figuresOf(name, results),
    beside: results?.beside,
    missing: missingOf(results?.python),
    imports: importsOf(results),
    ncclFaults: data.faults && { version: data.version, rows: faultRows(data.faults) },
    nvshmemFaults: nvshmemFaultsOf(data),
  }
}

/** Describes in words what a job counted, or undefined if it counted nothing. */
function summaryOf(data, output) {
  const { cases, summary, bars, resolve, sweep, interop, faults, kinds } = data
  if (cases) {
    const counts = ['passed', 'failed', 'skipped'].map((what) => [summary[what], what])
    return counts
      .filter(([count, what]) => count > 0 || what === 'passed')
      .map((pair) => pair.join(' '))
      .join(', ')
  }
  if (bars?.length > 0) return `${bars.filter(({ met }) => met).length} of ${bars.length} limits met`
  if (resolve) return `${sum(resolve, 'resolved')} of ${sum(resolve, 'functions')} functions found`
  if (sweep) {
    const counts = sweep.map((each) => each.counts)
    return `${sum(counts, 'equal')} answers equal, ${sum(counts, 'byNature')} differ by nature, ${sum(counts, 'different')} wrongly`
  }
  if (interop) {
    const { exchanges } = interop
    return `${exchanges.filter(({ error }) => error === undefined).length} of ${exchanges.length} exchanges`
  }
  if (faults)
    return `${data.results} results, ${sum(Object.values(faults), 'length')} faults, ${data.unknown.length} new`
  if (kinds) return `${data.answers} answers, ${sum(kinds, 'wrong')} faults, ${data.unknown.length} new`
  const lines = output.split('\n').filter((line) => line.startsWith('passed  ')).length
  return lines > 0 ? `${lines} passed` : undefined
}

/**
 * Returns the names of passed cases by suite if `hasNames`, the reasons of skips with counts, and the failures in
 * words.
 */
function casesOf(cases, hasNames) {
  const passed = {}
  const skipped = {}
  const failed = []
  for (const { suite, name, outcome, reason, error } of cases) {
    if (outcome === 'skip') skipped[reason] = (skipped[reason] ?? 0) + 1
    else if (outcome === 'fail') failed.push(`${suite}: ${name}: ${error?.split('\n')[0].trim()}`)
    else if (hasNames) (passed[suite] ??= []).push(name)
  }
  return { passed: hasNames ? passed : undefined, skipped, failed }
}

const smallBytes = 4096
const jobsOfCosts = /^bench-(?:costs(?:-once)?|gpu|graphs|captured-step|nccl(?:-process)?|nvshmem|short-calls)$/

/** Returns the rows of `costs.md`: the medians of each subject, and their ratios to C. */
function figuresOf(name, results) {
  const rows = Array.isArray(results) ? results : results?.cases
  if (!Array.isArray(rows) || !jobsOfCosts.test(name)) return undefined
  return rows
    .filter(({ layout, bytes, subjects = {} }) => {
      // Keeps the rows that measure the cost of a call, not of moving the bytes.
      if (name.startsWith('bench-nccl')) return layout === 'process' && bytes <= smallBytes
      return name !== 'bench-nvshmem' || 'awaited' in subjects
    })
    .map(({ title, unit, subjects, contestants, ratioToC }) => ({
      title,
      unit,
      medians: mapValues(subjects ?? contestants ?? {}, ({ median }) => rounded(median)),
      ratios: name === 'bench-short-calls' ? undefined : mapValues(ratioToC ?? {}, rounded),
    }))
}

function missingOf(python = {}) {
  const names = Object.keys(python).filter((name) => python[name].missing !== undefined)
  return names.length > 0 ? names : undefined
}

function importsOf(results) {
  const { packages, bareNodeStart } = results ?? {}
  // Older results have other fields.
  if (packages?.[0]?.importMilliseconds === undefined) return undefined
  const rows = packages.map((one) => ({
    package: one.package,
    milliseconds: rounded(one.importMilliseconds.median),
    ofBareStart: rounded(one.ofBareStart),
    mebibytes: one.bytesOverBareNode && rounded(one.bytesOverBareNode.median / 2 ** 20),
  }))
  return { bareNodeStart: rounded(bareNodeStart?.median), rows }
}

const outcomes = {
  'wrong, elements untouched': 'elements that are not written',
  'wrong, elements other': 'elements with wrong values',
  'wrong, elements both': 'elements that are not written, and elements with wrong values',
  'refused with 1': 'ncclUnhandledCudaError',
  'refused with 4': 'ncclInvalidArgument',
}

/** Returns the cells of the table of faults. Faults that differ only in collective, type and place share a row. */
function faultRows(faults) {
  const rows = new Map()
  for (const [kind, counts] of Object.entries(faults)) {
    const [, collective, op, dtype, ranks, memory, outcome] =
      /^(\w+)(?: (\w+))? of (\w+), (\d+) ranks, (\w+) memory(?:, in place)?: (.*)$/.exec(kind) ?? []
    if (collective === undefined) throw new Error(`a fault of NCCL of an unknown form: ${kind}`)
    const key = [ranks, memory, op, outcome].join()
    const row = rows.get(key) ?? { ranks, memory, op, outcome, collectives: new Set(), types: new Set(), results: 0 }
    row.collectives.add(collective)
    row.types.add(dtype)
    row.results += counts.length
    rows.set(key, row)
  }
  return [...rows.values()].map(({ ranks, memory, op, outcome, collectives, types, results }) => [
    `${ranks}${memory === 'plain' ? '' : `, ${memory} memory`}`,
    op ?? '–',
    [...collectives].join(', '),
    [...types].join(', '),
    outcomes[outcome] ?? outcome,
    results,
  ])
}

/** Describes faults of NVSHMEM in words. Only the last line of a program's output counts. */
function nvshmemFaultsOf({ kinds = [], results }) {
  const without = (results?.nvshmem && results.without) ?? []
  const words = [
    ...kinds.map(({ kind, known, wrong }) => `${kind}: ${wrong} of ${known} wrong`),
    ...without.map((text) => text.split('\n').at(-1)),
  ]
  return words.length > 0 ? words : undefined
}

/** Rounds to nine digits. The pages show three, and fewer than nine would round twice. */
function rounded(value) {
  return typeof value === 'number' ? Number(value.toPrecision(9)) : value
}

function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]))
}

function sum(list, key) {
  return list.reduce((total, one) => total + (one[key] ?? 0), 0)
}
