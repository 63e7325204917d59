// Renders docs/hardware/costs.md from the kept results.

/** The whole page, from what `readSettings` returns. */
export function renderCosts(settings) {
  const lines = [
    '# What a call costs',
    '',
    'Made by `pnpm docs:hardware` from the newest kept results of `bench-costs`, `bench-gpu`, `bench-graphs`, `bench-captured-step`, `bench-nccl`,',
    '`bench-nvshmem`, `bench-short-calls` and `bench-import`.',
    'All subjects take turns in one run, one after the other, and nothing is bound to a processor; a figure is the median of the rounds,',
    'each the best of several loops. In brackets: the ratio to the same work in C, the median over two rounds after one another. The',
    'program in C takes part twice: the second copy shows how much the machine makes of equals. Compare inside a row, not between machines.',
    'Since 2026-11-24 `bench-costs` and `bench-gpu` have the rounds of several processes, one after the other, and of their ratios the median:',
    'a process stays on the processor on which it began, and what else runs on the host can make that one half as slow again.',
    'Since commit 5bce3a7 (those of ddd34a4 are from before it) Shoal is measured in a process of its own there and in `bench-graphs` and `bench-captured-step`, as the program in C is. Before, it was the',
    'process that starts the others and reads what they answer: on an H200, where both were measured in turn, single launches took 1.14 to 1.23 times as long there,',
    'launches of a graph 1.05 to 2.1, building one 1.6 to 1.8.',
    '',
  ]
  const sections = settings.flatMap((setting) => {
    const parts = [waits, calls, graphs, collectives, puts, methods, imports].flatMap((part) => part(setting))
    if (parts.length === 0) return []
    return [`## ${setting.gpuCount} × ${setting.gpu}, NCCL ${ncclOf(setting)}, driver ${setting.driver}`, '', ...parts]
  })
  const nothing = ['No run has been kept so far.', '']
  return `${[...lines, ...(sections.length > 0 ? sections : nothing), ...reasons].join('\n').trimEnd()}\n`
}

const smallBytes = 4096
const isBound = 'Here the main threads are bound to the most idle processors.'

const reasons = [
  '## Where the difference comes from',
  '',
  '- **Each call**: in Node the loops of the program in C take as long as they do there (`C in Node`, 0.99 to 1.04 × C). The way into C takes',
  '  35 ns where one call follows the other (`cuCtxGetCurrent` raw), and 150 to 250 ns beside a launch: meanwhile the driver has been busy for 3 µs,',
  '  and V8 and Node-API have to be fetched into the caches again: `raw`, 1.04 to 1.08 × C, and `bare call`, the bound function alone with its',
  '  arguments lying ready, 1.01 to 1.06 (the program in C once more 0.99 to 1.04). What the package does before it takes 0.03 to 0.06 µs where nothing else runs between, and 0.2 to 0.45 µs',
  '  beside a launch; by the process the same launch takes 3.5 or 4.5 µs, in C as well. With every check left out, sizes and bytes written as',
  '  they come, a cooperative launch takes 0.15 µs more than the bare call, and one with a struct 0.18 (with them 0.27 and 0.41; medians of ten processes,',
  '  one H200): some 1.05 and 1.06 × C, as the bare call has 1.01 to 1.03, so the limit of 1.05 is not to be had by leaving checks out. The other way round nothing is lost: in C, 6 KiB of code',
  '  and 64 lines of memory between two launches leave the launches as they were. Then come checks of what was given, that objects are there',
  '  still, of one device, and of the right kind (`prepare` makes them once), and the context, where another one is current (`switching`).',
  '- **A graph of 1,000 kernels** keeps the GPU for a millisecond, and ten launches are measured behind a wait for those before. The first of',
  '  them takes 4 to 12 µs in C and 5 to 31 in Node, by the process, also by the bound function alone; from the third on 2.4 to 3.5 in C and 2.5 to 5.3 in Node.',
  '- **`await`** of work that is done costs no turn of the event loop. Other work is marked by an event, and the loop asks for it once a',
  '  turn: a few microseconds, in which it does everything else it has to do. After 100 µs a native thread asks, whose answer comes',
  '  15 µs later or more ([waiting](../design/waiting.md)). A program that waits with `…Sync` pays neither, and does nothing else meanwhile.',
  '- **Ordinary memory**: CUDA copies it through memory of its own and holds the thread that long, in C as well. Awaited copies go through',
  '  page-locked memory of ours, so that the thread stays free; that is one copy more. Only the JavaScript thread may write into an array,',
  '  a MiB a turn: one copy more on the way down. With several threads at it, 256 MiB take 38 to 41 ms up and 101 to 133 ms down, where the program',
  "  in C takes 33 to 39 and 21 to 23. Blocking calls are the driver's own: `cuMemcpy` from Node takes 1.08 × C at 64 KiB up and down. Page-locked memory (`PinnedBuffer`) needs neither. Where a result has 12 ms for 16 MiB down, page-locked memory",
  '  was made for each copy; since what was used last is kept it is 2 ms, and 24 ms for 64 MiB up and down (46 before).',
  '- **Many round trips at once**: the calls alone, through the raw packages, with an event behind each copy and asked for once a turn, take',
  '  1.06 × C. What is left are the objects between them: besides their own time, the memory that they take pushes the data of the driver',
  '  out of the caches, and its calls take a fifth longer. Without a GPU, where the five calls of a trip do nothing, a trip takes 2.0 µs in one',
  '  process and 3.8 in another, one after the other on the same machine: the collector takes an eighth of it, queuing a copy with page-locked',
  '  memory a ninth, and no other function a tenth. Beside the 9 µs of a trip in C that is 1.2 or 1.4: in five processes one after the other on two',
  '  H200s 1.16, 1.32, 1.41, 1.43 and 1.46 × C. `prepare` for launches, and slices and options that are made once, save some of it.',
  '- **Collectives**: NCCL works for some 6 µs on this thread for each rank of a group, in C as well. `prepare…` and `prepareGroup` make the',
  '  checks once: on two H200s 1.05 × C, where a plain group took 1.06 to 1.09 and the program in C against itself up to 1.03 (`bench-nccl-process`).',
  '- **`shoal bench`** and nccl-tests: from 16 MiB 0.998 to 1.004 ×. It was up to 1.02 until the figure no longer had the time in which a waiting thread',
  '  notices the end of long work, the calls went through the memory as those of nccl-tests do, and a GPU worked for 5 ms before a size and no',
  '  longer for 50: after 50 ms of large operations an H200 takes 1 % longer for each. Small ones take 12 to 14 µs or 16 to 24 on both sides, also in the',
  '  middle of a run: in 15 turns, by the size, nccl-tests took the longer time 4 to 7 times and `shoal bench` 9 to 12 times. Why more often is not known.',
  '  The medians are 1.44 × apart, the quickest turns 1.12 and 1.14 × in the worst of ten sizes.',
  '- **NVSHMEM, awaited**: its host calls block, so a thread of the session makes them. To hand a call over and to hear of its end took 8 to',
  '  11 µs on two hosts, whatever the call itself takes (11 to 15 before, when whoever looked for the other one found a lock taken, and the',
  '  event loop was woken by a call of the system). Without a GPU, at a call of 7 µs: 1.5 µs until the thread has it, 2.2 until the program',
  '  has its end, and as much again for checks, order and limits of the session. What a stream orders needs no such thread: 2 to 3 µs.',
  '- **Building a graph**: a node is an object with its checks, 0.25 to 0.5 µs beside 0.25 to 0.4 µs of the driver.',
  '- **Allocation on a stream** costs an object more than C. A [`CachingPool`](../guides/memory-pools.md#a-pool-that-keeps) makes no call at all.',
  '- **Import** of `driver`: half is V8 compiling 380 kB, and that is not the reading: with the bodies of all 1,400 functions taken out it takes',
  '  half as long still, as V8 makes an object of each function and class (1.3 to 1.6 µs). A quarter is Node resolving four packages and reading',
  '  five files, as long as for four packages with nothing in them; a tenth is what the modules do; the rest the collector and V8 linking names.',
  '  An older result has the time of `import()` instead. Node 22 and 24 start in less than half the time of Node 20, and import no faster: of',
  '  the start of a bare module it was 0.29 on Node 20 and 0.77 on Node 24 (processor time, no GPU). `NODE_COMPILE_CACHE=FOLDER`, or',
  '  `module.enableCompileCache()` in the program, spares half of it (Node 22 and later): 0.43.',
  '',
]

function waits(setting) {
  return ['bench-costs', 'bench-costs-once'].flatMap((name) => waitsOf(jobOf(setting, name)))
}

function waitsOf(job) {
  if (job?.data?.results?.cases === undefined) return []
  const { cases, beside, python } = job.data.results
  const title =
    job.name === 'bench-costs' ? 'What a program waits for' : 'The same in one process, where little time was'
  const lines = [`### ${title}`, '', dateOf(job), '', ...rowsOf(cases)]
  if (beside !== undefined) {
    const { tripsPerSecond, requests, median, percentile99, longest, delay } = beside
    lines.push(
      `An HTTP server on the same event loop as ${figure(tripsPerSecond)} round trips of 64 KiB a second: ${requests} requests, median ` +
        `${figure(median)} ms, 99th percentile ${figure(percentile99)} ms, longest ${figure(longest)} ms; delay of the loop: 99th percentile ` +
        `${figure(delay.percentile99)} ms, longest ${figure(delay.longest)} ms.`,
      '',
    )
  }
  const missing = Object.entries(python ?? {}).filter(([, { missing }]) => missing !== undefined)
  if (missing.length > 0) lines.push(`Without ${missing.map(([name]) => name).join(', ')}.`, '')
  return [...lines, ...missedOf(job)]
}

function calls(setting) {
  const job = jobOf(setting, 'bench-gpu')
  return job?.data?.results?.cases === undefined
    ? []
    : ['### Calls that only queue work', '', dateOf(job), '', ...rowsOf(job.data.results.cases), ...missedOf(job)]
}

function graphs(setting) {
  const jobs = ['bench-graphs', 'bench-captured-step'].map((name) => jobOf(setting, name))
  const known = jobs.filter((job) => job?.data?.results?.cases !== undefined)
  if (known.length === 0) return []
  const parts = known.flatMap((job) => [dateOf(job), '', ...rowsOf(job.data.results.cases), ...missedOf(job)])
  return ['### Graphs and launches with attributes', '', ...parts]
}

/** Those that cost the time of a call, not that of the bytes. */
function collectives(setting) {
  const job = jobOf(setting, 'bench-nccl-process') ?? jobOf(setting, 'bench-nccl')
  const small = job?.data?.results?.cases?.filter(({ layout, bytes }) => layout === 'process' && bytes <= smallBytes)
  if (!small?.length) return []
  return [
    '### Small collectives, all devices in one process',
    '',
    `${dateOf(job)} ${isBound}`,
    '',
    ...rowsOf(small),
    ...missedOf(job),
  ]
}

/** What is awaited, beside the call that blocks. */
function puts(setting) {
  const job = jobOf(setting, 'bench-nvshmem')
  const awaited = job?.data?.results?.cases?.filter(({ subjects = {} }) => 'awaited' in subjects)
  if (!awaited?.length) return []
  return ['### NVSHMEM from the host', '', `${dateOf(job)} ${isBound}`, '', ...rowsOf(awaited)]
}

function methods(setting) {
  const job = jobOf(setting, 'bench-short-calls')
  if (!Array.isArray(job?.data?.results)) return []
  return [
    '### Methods on a driver that does nothing',
    '',
    `${dateOf(job)} What is left is what stands between a method and its function.`,
    '',
    ...rowsOf(job.data.results, false),
    ...missedOf(job),
  ]
}

function imports(setting) {
  const job = jobOf(setting, 'bench-import')
  const { packages, bareNodeStart } = job?.data?.results ?? {}
  // Older results have other fields.
  if (packages?.[0]?.importMilliseconds === undefined) return []
  const ratio = ({ ofBareStart }) => (ofBareStart === undefined ? '–' : figure(ofBareStart))
  const rows = packages.map((one) => [
    one.package.startsWith('@') ? `\`${one.package}\`` : one.package,
    figure(one.importMilliseconds.median),
    ratio(one),
    one.bytesOverBareNode === undefined ? '–' : figure(one.bytesOverBareNode.median / 2 ** 20),
  ])
  const start = bareNodeStart === undefined ? '' : ` Bare Node starts and ends in ${figure(bareNodeStart.median)} ms.`
  return [
    '### Imports',
    '',
    `${dateOf(job)}${start}`,
    '',
    ...table(['', 'ms', '× the start of bare Node', 'MiB over bare Node'], rows),
    '',
  ]
}

/** Rows of figures with the ratio to C; older results call the subjects contestants. */
function rowsOf(cases, hasRatios = true) {
  const subjectsOf = ({ subjects, contestants }) => subjects ?? contestants ?? {}
  const names = [...new Set(cases.flatMap((row) => Object.keys(subjectsOf(row))))]
  const cell = (row, name) => {
    const one = subjectsOf(row)[name]
    if (one === undefined) return '–'
    const ratio = row.ratioToC?.[name]
    return name === 'C' || !hasRatios || ratio === undefined
      ? figure(one.median)
      : `${figure(one.median)} (${figure(ratio)})`
  }
  const rows = cases.map((row) => [row.title, row.unit, ...names.map((name) => cell(row, name))])
  return [...table(['', 'unit', ...names], rows), '']
}

function missedOf({ data: { bars = [] } }) {
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

/** Three digits, and no more of them than needed. */
function figure(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'none'
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)]
}
