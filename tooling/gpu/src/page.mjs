// Renders docs/hardware/README.md from the kept results.

/** Renders the whole page. `settings` is the result of `readSettings`. */
export function renderPage(settings) {
  const lines = [
    '# Results on hardware',
    '',
    'Made by `pnpm docs:hardware` from the files in [results](results). They hold a digest of the newest result of each job on',
    'each machine: what passed, and the figures of these pages. `pnpm gpu:collect` writes them. How to make a run:',
    '[a benchmark](../contributing/benchmark.md).',
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

/** Lists the jobs that ran, and how much of each passed. */
function passes(settings) {
  const names = [...new Set(settings.flatMap(({ jobs }) => jobs.map(({ name }) => name)))].sort()
  // Jobs that ended in the same way share a row.
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
  const words = job.summary
  if (missesLimits(job)) return `**missed**: ${words}`
  if (job.status === 'passed') return words ?? 'passed'
  return `**failed**: ${[job.reason, words].filter(Boolean).join('; ')}`
}

/** Is true if a job ran to its end, but one of its figures misses its limit. */
function missesLimits({ status, bars = [] }) {
  return status !== 'failed' && bars.some(({ met }) => !met)
}

function skips(settings) {
  const lines = eachJob(settings, ({ name, cases }, title) => {
    const reasons = Object.entries(cases?.skipped ?? {}).map(([reason, count]) => `${count} ${reason}`)
    return reasons.length === 0 ? [] : [`- ${title}, ${name}: ${reasons.join('; ')}`]
  })
  return lines.length === 0 ? [] : ['Cases are skipped for these reasons:', '', ...lines, '']
}

function failures(settings) {
  const lines = eachJob(settings, ({ name, cases }, title) =>
    (cases?.failed ?? []).map((words) => `- ${title}, ${name}: ${words}`),
  )
  return lines.length === 0 ? [] : ['These failed:', '', ...lines, '']
}

const toC = /(?:,? ratio to|,? against) C$/

/** Lists every figure that is a ratio to the same work in C. */
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
    'Shoal and a program in C take turns in the same run, on the same library; a figure is the worst of its sizes, each the median over two consecutive rounds. Graphs and the captured step are medians of several processes.',
    'In brackets: the same program in C once more, against itself. Bold: the limit is missed. Figures of different machines and runs do not compare: clocks differ, and so does what else runs on the host.',
    '',
    ...table(['', ...heads, 'limit'], rows),
    '',
  ]
}

/** Lists missed limits of figures that are not ratios to C. The table of ratios shows the others. */
function missedLimits(settings) {
  const lines = eachJob(settings, (job, title) => {
    const missed = barsOf(job)
      .filter(({ met, what, unit }) => !met && !(toC.test(what) && unit === ''))
      .map(({ what, value, limit, unit, side }) => {
        const figure = typeof value === 'number' ? `${Number(value.toPrecision(3))}${unit}` : 'none'
        return `${what}: ${figure} (${side} ${limit}${unit})`
      })
    return missed.length === 0 ? [] : [[title, `${job.name}: ${missed.join('; ')}`]]
  })
  const machines = [...new Set(lines.map(([title]) => title))].map((machine) => {
    const jobs = lines.filter(([title]) => title === machine).map(([, text]) => text)
    return `- ${machine}, ${jobs.join('. ')}`
  })
  return machines.length === 0
    ? []
    : ['Other limits that were missed ([costs](costs.md) has those of single calls):', '', ...machines, '']
}

/** Returns the limits of a job, except the limits that costs.md shows. */
function barsOf({ name, bars = [] }) {
  const told = ['bench-costs', 'bench-costs-once', 'bench-gpu', 'bench-nccl-process', 'bench-short-calls']
  return told.includes(name) ? [] : bars
}

/** Lists the faults of NCCL that a C program finds: the newest result of each version. */
function ncclFaults(settings) {
  const newest = new Map()
  eachJob(settings, (job) => {
    const { version } = job.ncclFaults ?? {}
    if (version && !(newest.get(version)?.started > job.started)) newest.set(version, job)
    return []
  })
  if (newest.size === 0) return []
  const rows = [...newest]
    .sort(([one], [other]) => one - other)
    .flatMap(([version, { ncclFaults }]) => ncclFaults.rows.map((cells) => [versionText(version), ...cells]))
  return [
    '## Known faults of NCCL',
    '',
    'Seen by a program in C (`tooling/gpu/host/ncclFaults.c`), on one rank and on two. The conformance suite leaves these out.',
    '',
    ...table(['NCCL', 'ranks', 'reduction', 'collectives', 'types', 'what happens', 'results'], rows),
    '',
  ]
}

/** Formats NCCL's version number: 22803 is 2.28.3. */
function versionText(version) {
  return `${Math.floor(version / 10_000)}.${Math.floor(version / 100) % 100}.${version % 100}`
}

function nvshmemFaults(settings) {
  const lines = new Set()
  for (const setting of settings) {
    const name = `NVSHMEM ${versionOf(setting, 'nvshmem')}`
    for (const { nvshmemFaults = [] } of setting.jobs)
      for (const words of nvshmemFaults) lines.add(`- ${name}: ${words}`)
  }
  if (lines.size === 0) return []
  const about =
    'Seen by programs in C (`tooling/gpu/host/nvshmemFaults.c`, `tooling/bench/native/nvshmem.c`), on up to four PEs.'
  return ['## Known faults of NVSHMEM', '', about, '', ...lines, '']
}

/** Calls `visit` with each job and the title of its setting. Returns all results in one list. */
function eachJob(settings, visit) {
  return settings.flatMap((setting, index) => setting.jobs.flatMap((job) => visit(job, titles(settings)[index])))
}

/** Returns short names of the settings: the number of GPUs, and what else differs. */
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
