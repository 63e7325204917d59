// How the search splits words and ranks pages. VitePress sends these functions to the browser as text, so no function
// may use another.

/** Splits a text into words. A name with capitals also gives its parts. */
const tokenize = (text) =>
  text.split(/[^\p{L}\p{N}_.]+/u).flatMap((word) => {
    const whole = word.replace(/^\.+|\.+$/g, '')
    const parts = whole.split(/_|\.|(?<=[a-z\d])(?=[A-Z])/)
    return parts.length > 1 ? [whole, ...parts] : parts
  })

/**
 * Removes the ending of a word, so `sharing`, `shared` and `share` match. Returns nothing for words without content.
 */
const stem = (word) => {
  const lower = word.toLowerCase()
  if (/^(?:an?|and|are|as|at|by|cuda|do|does|for|from|how|i|in|is|it|my|of|on|or|that|the|to|what|with|)$/.test(lower))
    return null
  if (lower.length < 5) return lower.replace(/(?<=..)s$/, '')
  const short = lower.replace(/(?:ings?|ed|es|e|s|ers?|ations?)$/, '').replace(/([^aeiouls])\1$/, '$1')
  return short.length < 3 ? lower : short
}

/** Returns the words of a question, with synonyms first. Names stay whole. */
const words = (text) => {
  const synonyms = {
    alloc: 'allocate',
    container: 'docker',
    copies: 'copy',
    cpu: 'host array toArray back',
    crash: 'error',
    cupy: 'python',
    deno: 'runtime bundler',
    download: 'copy host',
    emulator: 'software',
    esbuild: 'bundler',
    failure: 'error',
    fast: 'performance',
    faster: 'performance',
    free: 'dispose',
    gpus: 'device',
    handling: 'error',
    hang: 'timeout wait',
    install: 'start',
    interop: 'external python',
    jit: 'compile',
    k8s: 'kubernetes docker',
    kv: 'grow',
    cache: 'grow',
    leak: 'dispose',
    mock: 'software',
    mpi: 'rank launch',
    multi: 'several',
    multiprocess: 'rank',
    numba: 'python',
    oom: 'memory error',
    pagelocked: 'pinned',
    process: 'rank',
    processes: 'rank',
    quickstart: 'start',
    rdma: 'nvshmem',
    release: 'dispose',
    rollup: 'bundler',
    simulator: 'software device',
    slow: 'performance',
    split: 'partition',
    texture: 'sampler',
    thread: 'worker',
    threads: 'worker',
    tutorial: 'start',
    unified: 'managed',
    upload: 'copy host',
    vite: 'bundler',
    wait: 'synchronize await',
    webpack: 'bundler',
  }
  const own = text.split(/[^\p{L}\p{N}_.]+/u).map((word) => word.replace(/^\.+|\.+$/g, ''))
  return [...own.flatMap((word) => (synonyms[word.toLowerCase()] ?? '').split(' ')), ...own]
}

/** Ranks guides above the reference, and the reference above raw functions. */
const weigh = (id, term) => {
  const [path, anchor = ''] = id.split('#')
  const isName = term.length > 6 && anchor.startsWith(term) && anchor.length < term.length + 4
  if (/^\/packages\/[\w-]+-sys\//.test(path)) return isName && /^(?:cu|nccl|nv)/.test(term) ? 2.5 : 0.3
  if (/\/[A-Z]\w*$/.test(path) && path.toLowerCase().endsWith(`/${anchor}`) && anchor === term) return 4
  if (path.startsWith('/packages/')) return (isName ? 2 : 1) * (/\/[A-Z]\w*$/.test(path) ? 1.2 : 0.8)
  if (path === '/guides/') return 0.1
  if (path.startsWith('/guides/')) return 3
  return path.startsWith('/examples/') ? 1 : 0.4
}

/**
 * Splits a page into sections, each with the headings above it. Above the first heading comes the page's text from the
 * list of guides.
 */
const split = (about) => (path, html) => {
  const [, ...parts] = html.split(/<h([1-6]) id="([^"]*)"[^>]*>([\s\S]*?)<\/h\1>/)
  const plain = (text) => text.replace(/<a class="header-anchor"[^>]*>#<\/a>/g, '').replace(/<[^>]*>/g, ' ')
  const above = []
  return Array.from({ length: parts.length / 4 }, (_, index) => {
    const [level, anchor, heading, content] = parts.slice(4 * index, 4 * index + 4)
    above.splice(Number(level) - 1)
    above[Number(level) - 1] = plain(heading).trim()
    const titles = above.filter((title) => title !== undefined)
    return {
      anchor,
      titles: level === '1' ? [about(path) ?? '', ...titles].filter(Boolean) : titles,
      text: plain(content),
    }
  })
}

/** `about` returns the text about a page from the list of guides. */
export const searchSettings = (about) => ({
  _splitIntoSections: split(about),
  options: { tokenize, processTerm: stem },
  searchOptions: {
    tokenize: words,
    boost: { title: 4, titles: 4, text: 1 },
    // A user may still be typing the last word, so a prefix of it matches.
    prefix: (term, at, terms) => term.length > 2 && at === terms.length - 1,
    fuzzy: (term) => (term.length > 5 ? 0.15 : false),
    weights: { prefix: 0.3, fuzzy: 0.1 },
    boostDocument: weigh,
  },
})
