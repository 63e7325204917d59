// Renders docs/hardware/README.md from the records.

/** The whole page. `records` come newest first, as { file, record }. */
export function renderPage(records) {
  const lines = [
    '# Results on hardware',
    '',
    'Made by `pnpm docs:hardware` from the files in `results`; edit those only through `pnpm gpu:collect`.',
    'How a run is made: [CONTRIBUTING](../../CONTRIBUTING.md#on-a-gpu-host). Figures of different runs do not compare:',
    'clocks and neighbours differ. What counts are ratios inside one run, where everything takes turns.',
    '',
  ]
  if (records.length === 0) return [...lines, 'No run has been kept so far.', ''].join('\n')
  lines.push('## Runs', '', ...runTable(records), '')
  const settings = new Map()
  for (const one of records) {
    const setting = `${one.record.gpu} × ${one.record.gpuCount}, NCCL ${version(one.record, 'nccl')}`
    settings.set(setting, [...(settings.get(setting) ?? []), one])
  }
  for (const [setting, ofSetting] of settings) lines.push(...renderSetting(setting, ofSetting))
  return `${lines.join('\n').trimEnd()}\n`
}

function runTable(records) {
  const rows = records.map(({ file, record }) => [
    `[${record.started.slice(0, 16).replace('T', ' ')}](results/${file})`,
    `${record.gpu} × ${record.gpuCount}`,
    record.driver,
    version(record, 'nccl'),
    record.node,
    record.commit ? `${record.commit.slice(0, 10)}${record.modified ? ' and changes' : ''}` : 'unknown',
    ['passed', 'failed', 'not run'].map((status) => count(record, status)).join(' / '),
  ])
  return table(['started (UTC)', 'GPUs', 'driver', 'NCCL', 'Node', 'commit', 'jobs passed / failed / not run'], rows)
}

/** The machine of the newest run, and of every job the newest result. */
function renderSetting(setting, records) {
  const newest = new Map()
  for (const { file, record } of records) {
    for (const job of record.jobs) {
      const known = newest.get(job.name)
      if (known === undefined || (known.job.status === 'not run' && job.status !== 'not run')) {
        newest.set(job.name, { job, file, record })
      }
    }
  }
  const found = [...newest.values()]
  const lines = [`## ${setting}`, '', ...table(['what', 'found'], facts(records[0].record)), '']
  const rows = found.map(({ job: { name, status, seconds, reason }, file, record }) => [
    name,
    `${status}${reason ? `: ${reason}` : ''}`,
    seconds,
    `[${record.started.slice(0, 16).replace('T', ' ')}](results/${file})`,
  ])
  lines.push(...table(['job', 'newest result', 'seconds', 'run'], rows), '')
  for (const { job } of found.filter(({ job }) => job.status !== 'not run')) lines.push(...renderJob(job))
  return lines
}

function facts(record) {
  const libraries = record.libraries.filter(({ found }) => found)
  const named = (entries) => entries.map(([name, value]) => `${name} ${value}`).join(', ')
  return [
    ['GPU', `${record.gpu}, ${record.memory}, compute capability ${record.computeCapability}`],
    ['driver', record.driver],
    ['toolkit', record.toolkit ?? 'none'],
    ['libraries', libraries.map(({ file, version, step }) => `${file} ${version ?? ''} (${step})`).join(', ')],
    ['Python packages', named(Object.entries(record.pythonPackages ?? {}))],
    ['machine', `${record.cores} cores, ${record.processor}, Linux ${record.kernel}`],
  ]
}

/** A job's figures as it printed them, with the bars it was measured against. */
function renderJob({ name, status, output = [], data }) {
  const lines = [`### ${name}`, '']
  const bars = data?.bars ?? []
  if (bars.length > 0) {
    // Two crews of the same program in C, in the same rounds: what the machine makes of equals.
    const hasControl = bars.some(({ ofCAgain }) => ofCAgain !== undefined)
    const rows = bars.map((bar) => [
      bar.what,
      figure(bar.value, bar.unit),
      `${bar.side} ${bar.limit}${bar.unit}`,
      bar.met ? 'yes' : '**no**',
      ...(hasControl ? [bar.ofCAgain === undefined ? '–' : figure(bar.ofCAgain, bar.unit)] : []),
    ])
    const head = ['bar', 'measured', 'wanted', 'met', ...(hasControl ? ['C against itself'] : [])]
    lines.push(...table(head, rows), '')
  }
  if (data?.cases) lines.push(...renderCases(data))
  if (data?.resolve) lines.push(...renderResolve(data))
  if (data?.sweep) lines.push(...renderSweep(data))
  if (data?.interop) lines.push(...renderInterop(data.interop))
  // The tables say what the job printed.
  if (status === 'passed' && (data?.resolve || data?.sweep || data?.interop)) return lines
  const kept = status === 'failed' ? output.slice(-60) : output.slice(-80)
  if (kept.length > 0) lines.push('```text', ...kept.map((line) => line.trimEnd().replaceAll('```', "'''")), '```', '')
  return lines
}

/** The count of a suite, and each case that failed or could not run. */
function renderCases({ summary, cases }) {
  const lines = [`${summary.passed} passed, ${summary.failed} failed, ${summary.skipped} skipped.`, '']
  const notable = cases.filter(({ outcome }) => outcome !== 'ok')
  if (notable.length === 0) return lines
  const rows = notable.map(({ suite, name, outcome, reason, error }) => [
    `${suite}: ${name}`,
    outcome === 'fail' ? '**failed**' : 'skipped',
    reason ?? error?.split('\n')[0] ?? '',
  ])
  return [...lines, ...table(['case', 'outcome', 'why'], rows), '']
}

/** How many functions of each library resolve, and why the others do not. */
function renderResolve({ resolve, notResolved }) {
  const rows = resolve.map((row) => [
    `${row.library} ${row.version ?? ''}`,
    row.mode,
    ...[row.functions, row.resolved, row.gated, row.missing, row.unexplained],
  ])
  const head = ['library', 'streams', 'functions', 'resolved', 'gated', 'missing', 'missing without a reason']
  const reasons = notResolved.map(({ library, version, outcome, reason, names }) => [
    `${library} ${version ?? ''}`,
    outcome,
    reason,
    `${names.length}: ${names.slice(0, 8).join(', ')}${names.length > 8 ? ', …' : ''}`,
  ])
  const why = reasons.length > 0 ? [...table(['library', 'outcome', 'why', 'functions'], reasons), ''] : []
  return [...table(head, rows), '', ...why]
}

/** How many answers were the same from C++ and through Shoal, and what could not be by nature. */
function renderSweep({ sweep, differences, byNature }) {
  const rows = sweep.map(({ library, version, mode, groups, counts }) => [
    `${library} ${version ?? ''}`,
    mode,
    groups,
    Object.values(counts).reduce((sum, count) => sum + count, 0),
    ...[counts.equal, counts.byNature, counts.different, counts.absent, counts.unasked],
  ])
  const head = ['library', 'streams', 'groups', 'questions', 'equal', 'by nature', 'different', 'absent', 'unasked']
  const wrong = differences.map(({ group, question, details }) => [group, question, details.join('; ')])
  const natures = byNature.map(({ reason, calls }) => [reason, calls.join(', ')])
  return [
    ...table(head, rows),
    '',
    ...(wrong.length > 0 ? [...table(['group', 'question', 'difference'], wrong), ''] : []),
    ...(natures.length > 0 ? [...table(['not compared byte by byte', 'functions'], natures), ''] : []),
  ]
}

/** Which memory went from Node to Python and back, by Python's library. */
function renderInterop({ libraries, exchanges }) {
  const titles = [...new Set(exchanges.map(({ direction, title }) => `${direction}, ${title}`))]
  const cell = (library, title) => {
    const one = exchanges.find((each) => each.library === library && `${each.direction}, ${each.title}` === title)
    if (!one) return '–'
    return one.error === undefined ? `${one.bytes} bytes` : `**failed**: ${one.error}`
  }
  const name = ({ library, version, error }) => `${library}${version ? ` ${version}` : ''}${error ? ' (failed)' : ''}`
  const rows = titles.map((title) => [title, ...libraries.map(({ library }) => cell(library, title))])
  const missing = libraries.filter(({ error }) => error !== undefined)
  return [
    ...table(['every byte compared on both sides', ...libraries.map(name)], rows),
    '',
    ...missing.flatMap(({ library, error }) => [`${library}: ${error.split('\n')[0]}`, '']),
  ]
}

function figure(value, unit) {
  if (typeof value !== 'number') return 'none'
  return `${value >= 1000 ? value.toFixed(0) : value.toPrecision(3)}${unit}`
}

function version(record, id) {
  return record.libraries.find((library) => library.id === id)?.version ?? 'none'
}

function count(record, status) {
  return record.jobs.filter((job) => job.status === status).length
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => escapeCell(String(cell))).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)]
}

function escapeCell(text) {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
