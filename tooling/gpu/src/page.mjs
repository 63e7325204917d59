// Renders docs/hardware/README.md from the kept results.

/** The whole page, from what `readSettings` returns. */
export function renderPage(settings) {
  const lines = [
    '# Results on hardware',
    '',
    'Made by `pnpm docs:hardware` from the files in [results](results), which hold the newest result of each job on each',
    'machine, with all its figures; `pnpm gpu:collect` writes them. How a run is made:',
    '[CONTRIBUTING](../../CONTRIBUTING.md#on-a-gpu-host).',
    '',
  ]
  if (settings.length === 0) return [...lines, 'No run has been kept so far.', ''].join('\n')
  const sections = [machines, passes, skips, failures, ratios, missedLimits, ncclFaults, nvshmemFaults]
  return `${[...lines, ...sections.flatMap((section) => section(settings))].join('\n').trimEnd()}\n`
}

function machines(settings) {
  const heads = ['GPUs', 'driver', 'CUDA', 'NCCL', 'NVSHMEM', 'Node.js', 'Python', 'machine', 'results of']
  const rows = settings.map((setting) => [
    `${setting.gpuCount} × ${setting.gpu}, ${setting.memory}, compute capability ${setting.computeCapability}`,
    setting.driver,
    setting.toolkit ?? 'none',
    ...['nccl', 'nvshmem'].map((id) => versionOf(setting, id)),
    setting.node,
    pythonOf(setting.pythonPackages),
    `${setting.cores} cores, ${setting.processor}, Linux ${setting.kernel}`,
    datesOf(setting.jobs),
  ])
  return ['## Machines', '', ...table(heads, rows), '']
}

function pythonOf(versions) {
  const packages = versions ?? {}
  const there = ['python', 'cuda-bindings', 'cupy-cuda13x', 'torch'].filter((name) => packages[name] !== undefined)
  return there.map((name) => `${name === 'python' ? '' : `${name} `}${packages[name]}`).join(', ') || 'none'
}

function datesOf(jobs) {
  const days = jobs.map(({ started }) => started.slice(0, 10)).sort()
  return [...new Set([days[0], days.at(-1)])].join(' to ')
}

/** What ran, and how much of it passed. */
function passes(settings) {
  const names = [...new Set(settings.flatMap(({ jobs }) => jobs.map(({ name }) => name)))].sort()
  // Jobs that ended alike are a line.
  const rows = []
  for (const name of names) {
    const cells = settings.map((setting) => cellOf(jobOf(setting, name)))
    const alike = rows.find((row) => cells.every((cell, index) => cell === row[index + 1]))
    if (alike !== undefined) alike[0] += `, ${name}`
    else rows.push([name, ...cells])
  }
  return ['## What passed', '', ...table(['job', ...titles(settings)], rows), '']
}

function cellOf(job) {
  if (job === undefined) return '–'
  if (job.status === 'not run') return `not run: ${job.reason}`
  const words = summaryOf(job)
  if (missesLimits(job)) return `**missed**: ${words}`
  if (job.status === 'passed') return words ?? 'passed'
  return `**failed**: ${[job.reason, words].filter(Boolean).join('; ')}`
}

/** Whether a job ran to its end, but a figure of it is not what it has to be. */
function missesLimits({ status, data }) {
  return status !== 'failed' && data?.bars?.some(({ met }) => !met) === true
}

/** What a job counted, in words; undefined where it counted nothing. */
function summaryOf({ data = {}, output = [] }) {
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
  const lines = output.filter((line) => line.startsWith('passed  ')).length
  return lines > 0 ? `${lines} passed` : undefined
}

function skips(settings) {
  const lines = casesOf(settings, 'skip', (skipped) => {
    const reasons = new Map()
    for (const { reason } of skipped) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
    return [[...reasons].map(([reason, count]) => `${count} ${reason}`).join('; ')]
  })
  return lines.length === 0 ? [] : ['Cases are skipped for these reasons:', '', ...lines, '']
}

function failures(settings) {
  const lines = casesOf(settings, 'fail', (failed) =>
    failed.map(({ suite, name, error }) => `${suite}: ${name}: ${error?.split('\n')[0]}`),
  )
  return lines.length === 0 ? [] : ['These failed:', '', ...lines, '']
}

function casesOf(settings, wanted, describe) {
  return eachJob(settings, ({ name, data }, title) => {
    const found = (data?.cases ?? []).filter(({ outcome }) => outcome === wanted)
    return found.length === 0 ? [] : describe(found).map((words) => `- ${title}, ${name}: ${words}`)
  })
}

const toC = /(?:,? ratio to|,? against) C$/

/** Every figure that is a ratio to the same work in C. */
function ratios(settings) {
  const found = new Map()
  eachJob(settings, (job, title) => {
    for (const bar of barsOf(job)) {
      if (!toC.test(bar.what) || bar.unit !== '') continue
      const name = bar.what.replace(toC, '').replace(/ of \d+ ranks/, '')
      const row = found.get(name) ?? { limit: `${bar.side} ${ratio(bar.limit)}`, cells: new Map() }
      const again = bar.ofCAgain === undefined ? '' : ` (${ratio(bar.ofCAgain)})`
      row.cells.set(title, `${bar.met ? ratio(bar.value) : `**${ratio(bar.value)}**`}${again}`)
      found.set(name, row)
    }
    return []
  })
  if (found.size === 0) return []
  const heads = titles(settings).filter((title) => [...found.values()].some(({ cells }) => cells.has(title)))
  const rows = [...found].map(([name, { limit, cells }]) => [name, ...heads.map((one) => cells.get(one) ?? '–'), limit])
  return [
    '## Ratios to C',
    '',
    'Shoal and a program in C take turns in the same run, on the same library; a figure is the worst of the sizes that it is about, each the median over two rounds after one another (before 2026-11-22: over the rounds). Graphs and the captured step are of several processes, and the median of their ratios.',
    'In brackets: the same program in C once more, against itself. Bold: the limit is missed. Figures of different machines and runs do not compare: clocks differ, and so does what else runs on the host.',
    '',
    ...table(['', ...heads, 'limit'], rows),
    '',
  ]
}

/** Limits of figures that are no ratio to C; the table of ratios has the others. */
function missedLimits(settings) {
  const lines = eachJob(settings, (job, title) => {
    const missed = barsOf(job)
      .filter(({ met, what, unit }) => !met && !(toC.test(what) && unit === ''))
      .map(({ what, value, limit, unit, side }) => {
        const figure = typeof value === 'number' ? `${Number(value.toPrecision(3))}${unit}` : 'none'
        return `${what}: ${figure} (${side} ${limit}${unit})`
      })
    return missed.length === 0 ? [] : [`- ${title}, ${job.name}: ${missed.join('; ')}`]
  })
  return lines.length === 0
    ? []
    : ['Other limits that were missed ([costs](costs.md) has those of single calls):', '', ...lines, '']
}

/** The limits of a job, but of those that costs.md tells of. */
function barsOf({ name, data }) {
  const told = ['bench-costs', 'bench-costs-once', 'bench-gpu', 'bench-nccl-process', 'bench-short-calls']
  return told.includes(name) ? [] : (data?.bars ?? [])
}

/** What a program in C sees NCCL do wrong: the newest result of each version. */
function ncclFaults(settings) {
  const newest = new Map()
  eachJob(settings, (job) => {
    const { faults, version } = job.data ?? {}
    if (faults && !(newest.get(version)?.started > job.started)) newest.set(version, job)
    return []
  })
  if (newest.size === 0) return []
  const rows = [...newest]
    .sort(([one], [other]) => one - other)
    .flatMap(([version, { data }]) => faultRows(version, data))
  return [
    '## Known faults of NCCL',
    '',
    'Seen by a program in C (`tooling/gpu/host/ncclFaults.c`), on one rank and on two. The conformance suite leaves these out.',
    '',
    ...table(['NCCL', 'ranks', 'reduction', 'collectives', 'types', 'what happens', 'results'], rows),
    '',
  ]
}

const outcomes = {
  'wrong, elements untouched': 'elements that are not written',
  'wrong, elements other': 'elements with wrong values',
  'wrong, elements both': 'elements that are not written, and elements with wrong values',
  'refused with 1': 'ncclUnhandledCudaError',
  'refused with 4': 'ncclInvalidArgument',
}

/** Kinds of faults that differ in collective, type and place alone make one row. */
function faultRows(version, { faults }) {
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
  const name = `${Math.floor(version / 10_000)}.${Math.floor(version / 100) % 100}.${version % 100}`
  return [...rows.values()].map(({ ranks, memory, op, outcome, collectives, types, results }) => [
    name,
    `${ranks}${memory === 'plain' ? '' : `, ${memory} memory`}`,
    op ?? '–',
    [...collectives].join(', '),
    [...types].join(', '),
    outcomes[outcome] ?? outcome,
    results,
  ])
}

function nvshmemFaults(settings) {
  const lines = new Set()
  for (const setting of settings) {
    const name = `NVSHMEM ${versionOf(setting, 'nvshmem')}`
    for (const { data } of setting.jobs) {
      for (const { kind, known, wrong } of data?.kinds ?? [])
        lines.add(`- ${name}: ${kind}: ${wrong} of ${known} wrong`)
      const without = (data?.results?.nvshmem && data.results.without) ?? []
      // The last line is what the program in C said.
      for (const words of without) lines.add(`- ${name}: ${words.split('\n').at(-1)}`)
    }
  }
  if (lines.size === 0) return []
  const about =
    'Seen by programs in C (`tooling/gpu/host/nvshmemFaults.c`, `tooling/bench/native/nvshmem.c`), on up to four PEs.'
  return ['## Known faults of NVSHMEM', '', about, '', ...lines, '']
}

/** Calls `visit` with each job and the title of its setting; returns all results in one list. */
function eachJob(settings, visit) {
  return settings.flatMap((setting, index) => setting.jobs.flatMap((job) => visit(job, titles(settings)[index])))
}

/** Short names of the settings: the number of GPUs, and what differs besides. */
function titles(settings) {
  const differ = (pick) => new Set(settings.map(pick)).size > 1
  const [hasModels, hasVersions] = [differ(({ gpu }) => gpu), differ((setting) => versionOf(setting, 'nccl'))]
  return settings.map((setting) => {
    const gpus = hasModels
      ? `${setting.gpuCount} × ${setting.gpu}`
      : `${setting.gpuCount} GPU${setting.gpuCount > 1 ? 's' : ''}`
    return hasVersions ? `${gpus}, NCCL ${versionOf(setting, 'nccl')}` : gpus
  })
}

function jobOf({ jobs }, name) {
  return jobs.find((job) => job.name === name)
}

function versionOf({ libraries }, id) {
  return libraries.find((library) => library.id === id)?.version ?? 'none'
}

function sum(list, key) {
  return list.reduce((total, one) => total + (one[key] ?? 0), 0)
}

function ratio(value) {
  return typeof value === 'number' ? `${value.toFixed(2)}×` : 'none'
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => escapeCell(String(cell))).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)]
}

function escapeCell(text) {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
