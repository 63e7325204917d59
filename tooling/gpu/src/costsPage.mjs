// Renders docs/hardware/costs.md from the kept results.

/** Renders the whole page. `settings` is the result of `readSettings`. */
export function renderCosts(settings) {
  const lines = [
    '# What a call costs',
    '',
    'Times of Shoal next to the same work in C, and in other bindings. In brackets: the ratio to C. Figures compare within a row, not between',
    'machines. [Performance](../guides/performance.md) says what to do about them, [Method](#method) how they were measured.',
    '',
  ]
  const sections = settings.flatMap((setting) => {
    const parts = [waits, calls, graphs, collectives, puts, methods, imports].flatMap((part) => part(setting))
    if (parts.length === 0) return []
    return [`## ${setting.gpuCount} × ${setting.gpu}, NCCL ${ncclOf(setting)}, driver ${setting.driver}`, '', ...parts]
  })
  const nothing = ['No run has been kept so far.', '']
  return `${[...lines, ...(sections.length > 0 ? sections : nothing), ...reasons, ...method].join('\n').trimEnd()}\n`
}

const isBound = ' Here the main threads are bound to the most idle processors.'

const reasons = [
  '## Where the difference comes from',
  '',
  '- **Each call**: the way into C takes 35 ns in a loop of short calls, and 150 to 250 ns beside a launch. A launch keeps the driver busy for 3 µs,',
  '  so V8 and Node-API have left the caches when the next call begins. The checks of a package take 0.03 to 0.06 µs in a loop and 0.2 to 0.45 µs',
  '  beside a launch. A prepared launch makes its checks once. `switching` also changes the current context.',
  '- **A graph of 1,000 kernels**: the first launches after a wait take 4 to 12 µs in C and 5 to 31 µs in Node. From the third on they take 2.4 to',
  '  3.5 µs and 2.5 to 5.3 µs.',
  '- **`await`** of completed work needs no turn of the event loop. For other work the loop asks once a turn, which takes a few microseconds. After',
  '  100 µs a native thread asks instead, and its answer arrives 15 µs later or more ([waiting](../design/waiting.md)). `…Sync` pays neither, but',
  '  blocks the thread.',
  '- **Ordinary memory**: CUDA copies it through its own page-locked memory and blocks the calling thread, in C too. Awaited copies go through',
  '  page-locked memory of the package, which adds a copy but keeps the thread free. On the way down the JavaScript thread alone may write into an',
  '  array, a MiB per turn. Page-locked memory (`PinnedBuffer`) avoids both.',
  '- **Many round trips in flight**: the raw calls take 1.06 × C. The objects of each trip take the rest: their memory displaces the data of the',
  '  driver in the caches. Prepared launches, and slices and options that are made once, save a part.',
  '- **Collectives**: NCCL works for 6 µs on this thread for each rank of a group, in C too. `prepare…` and `prepareGroup` make the checks once.',
  '- **`shoal bench`** and nccl-tests agree from 16 MiB (0.998 to 1.004 ×). Both take 12 to 14 µs or 16 to 24 µs for small operations, and change',
  '  between the two in the middle of a run. `shoal bench` does so more often, for an unknown reason.',
  '- **NVSHMEM, awaited**: host calls block, so a thread of the session makes them. Handing a call over and hearing of its end takes 8 to 11 µs.',
  '  Stream operations need no such thread: 2 to 3 µs.',
  '- **Building a graph**: a node is an object with checks, 0.25 to 0.5 µs, beside 0.25 to 0.4 µs of the driver.',
  '- **Allocation on a stream** costs one object more than C. A [`CachingPool`](../guides/memory-pools.md#caching-pools) makes no call.',
  '- **Import** of `driver`: half of the time V8 compiles, and a quarter of the time Node resolves packages and reads files. `NODE_COMPILE_CACHE=FOLDER`',
  '  or `module.enableCompileCache()` halves the time (Node 22 and later).',
  '',
]

const method = [
  '## Method',
  '',
  'All subjects take turns in one run, each in a process of its own. A figure is the median of the rounds, and each round is the best of several',
  'loops. The ratio to C is the median ratio. The C program runs twice, and the ratio of the two copies is the noise floor. Machines do not compare:',
  'clocks differ, and other guests of a host can slow a processor by half.',
  '',
  '`pnpm docs:hardware` makes this page from the newest kept results of `bench-costs`, `bench-gpu`, `bench-graphs`, `bench-captured-step`,',
  '`bench-nccl`, `bench-nvshmem`, `bench-short-calls` and `bench-import`.',
  '',
]

function waits(setting) {
  return ['bench-costs', 'bench-costs-once'].flatMap((name) => waitsOf(jobOf(setting, name)))
}

function waitsOf(job) {
  if (job?.figures === undefined) return []
  const { figures, beside, missing } = job
  const title =
    job.name === 'bench-costs' ? 'What a program waits for' : 'The same in one process, where little time was'
  const lines = [`### ${title}`, '', dateOf(job), '', ...rowsOf(figures)]
  if (beside !== undefined) {
    const { tripsPerSecond, requests, median, percentile99, longest, delay } = beside
    lines.push(
      `An HTTP server on the same event loop as ${figure(tripsPerSecond)} round trips of 64 KiB a second: ${requests} requests, median ` +
        `${figure(median)} ms, 99th percentile ${figure(percentile99)} ms, longest ${figure(longest)} ms; delay of the loop: 99th percentile ` +
        `${figure(delay.percentile99)} ms, longest ${figure(delay.longest)} ms.`,
      '',
    )
  }
  if (missing !== undefined) lines.push(`Without ${missing.join(', ')}.`, '')
  return [...lines, ...missedOf(job)]
}

/** Renders a section with the jobs' figures, or nothing if no job has figures. */
function section(title, jobs, remark = '') {
  const known = jobs.filter((job) => job?.figures?.length > 0)
  if (known.length === 0) return []
  const parts = known.flatMap((job) => [dateOf(job) + remark, '', ...rowsOf(job.figures), ...missedOf(job)])
  return [`### ${title}`, '', ...parts]
}

function calls(setting) {
  return section('Calls that only queue work', [jobOf(setting, 'bench-gpu')])
}

function graphs(setting) {
  const jobs = ['bench-graphs', 'bench-captured-step'].map((name) => jobOf(setting, name))
  return section('Graphs and launches with attributes', jobs)
}

function collectives(setting) {
  const job = jobOf(setting, 'bench-nccl-process') ?? jobOf(setting, 'bench-nccl')
  return section('Small collectives, all devices in one process', [job], isBound)
}

/** Compares the awaited call with the blocking call. */
function puts(setting) {
  return section('NVSHMEM from the host', [jobOf(setting, 'bench-nvshmem')], isBound)
}

function methods(setting) {
  const remark = ' What is left is what stands between a method and its function.'
  return section('Methods on a driver that does nothing', [jobOf(setting, 'bench-short-calls')], remark)
}

function imports(setting) {
  const job = jobOf(setting, 'bench-import')
  if (job?.imports === undefined) return []
  const { bareNodeStart, rows } = job.imports
  const cells = rows.map((one) => [
    one.package.startsWith('@') ? `\`${one.package}\`` : one.package,
    figure(one.milliseconds),
    ...[one.ofBareStart, one.mebibytes].map((value) => (value === undefined ? '–' : figure(value))),
  ])
  const start = bareNodeStart === undefined ? '' : ` Bare Node starts and ends in ${figure(bareNodeStart)} ms.`
  const heads = ['', 'ms', '× the start of bare Node', 'MiB over bare Node']
  return ['### Imports', '', `${dateOf(job)}${start}`, '', ...table(heads, cells), '']
}

function rowsOf(figures) {
  const names = [...new Set(figures.flatMap(({ medians }) => Object.keys(medians)))]
  const cell = ({ medians, ratios }, name) => {
    if (!(name in medians)) return '–'
    const ratio = ratios?.[name]
    return name === 'C' || ratio === undefined ? figure(medians[name]) : `${figure(medians[name])} (${figure(ratio)})`
  }
  const rows = figures.map((row) => [row.title, row.unit, ...names.map((name) => cell(row, name))])
  return [...table(['', 'unit', ...names], rows), '']
}

function missedOf({ bars = [] }) {
  const missed = bars.filter(({ met }) => !met)
  if (missed.length === 0) return []
  const lines = missed.map(
    ({ what, value, limit, unit, side }) => `- ${what}: ${figure(value)}${unit} (${side} ${limit}${unit})`,
  )
  return ['Limits that were missed:', '', ...lines, '']
}

function dateOf({ started, commit }) {
  return `${started.slice(0, 10)}${commit ? `, commit ${commit.slice(0, 7)}` : ''}.`
}

function jobOf({ jobs }, name) {
  return jobs.find((job) => job.name === name)
}

function ncclOf({ libraries }) {
  return libraries.find(({ id }) => id === 'nccl')?.version ?? 'none'
}

/** Formats at most three digits. */
function figure(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'none'
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)]
}
