// Full-text search, the same in the browser and in the tests.
import MiniSearch from 'minisearch'
import type { Found } from './pages.js'

/** Words that mean what others mean, for those who call it otherwise. */
const synonyms: { readonly [word: string]: readonly string[] } = {
  alloc: ['allocate'],
  crash: ['error'],
  cpu: ['software'],
  cupy: ['python'],
  deno: ['runtime', 'bundler'],
  emulator: ['software'],
  esbuild: ['bundler'],
  gpus: ['device'],
  hang: ['timeout', 'wait'],
  install: ['start'],
  interop: ['external', 'python'],
  jit: ['compile'],
  leak: ['dispose'],
  mock: ['software'],
  mpi: ['rank', 'launch'],
  multiprocess: ['rank'],
  numba: ['python'],
  oom: ['memory', 'error'],
  pagelocked: ['pinned'],
  processes: ['process', 'rank'],
  quickstart: ['start'],
  rdma: ['nvshmem'],
  rollup: ['bundler'],
  simulator: ['software', 'device'],
  split: ['partition'],
  texture: ['sampler'],
  thread: ['worker'],
  tutorial: ['start'],
  unified: ['managed'],
  vite: ['bundler'],
  webpack: ['bundler'],
}
/** Words that say nothing. */
const empty = new Set('a an and are as at by for from how i in is it my of on or that the to what with do'.split(' '))

/** A word without its ending: `sharing`, `shared` and `share` are the same. */
function stem(word: string): string {
  const short = word.length < 5 ? word.replace(/s$/, '') : word.replace(/(?:ings?|ed|es|e|s|ers?|ations?)$/, '')
  return short.length < 3 ? word : short
}

/** The words of a text; of a name with capitals also its parts. */
function tokenize(text: string): string[] {
  return text.split(/[^\p{L}\p{N}_.]+/u).flatMap((word) => {
    const parts = word.split(/_|\.|(?<=[a-z\d])(?=[A-Z])/)
    return parts.length > 1 ? [word, ...parts] : parts
  })
}

function toTerm(word: string): string | null {
  const lower = word.toLowerCase().replace(/^[._]+|[._]+$/g, '')
  return lower === '' || empty.has(lower) ? null : stem(lower)
}

/** A search over what was found when the site was made. Gives each page once, by its best part. */
export function createSearch(all: readonly Found[]): (query: string) => Found[] {
  const index = new MiniSearch<Found & { readonly id: number }>({
    fields: ['title', 'about', 'text'],
    tokenize,
    processTerm: toTerm,
    searchOptions: {
      boost: { title: 4, about: 3 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 5 ? 0.15 : false),
      weights: { prefix: 0.3, fuzzy: 0.1 },
      boostDocument: (id) => all[id as number]!.weight,
    },
  })
  // What a class is, its members are of.
  const classes = new Map(all.map(({ url, text }) => [url, text.split('. ', 1)[0]!]))
  const aboutOf = ({ kind, url }: Found): { about?: string } => {
    const about = kind.startsWith('member') ? classes.get(url.replace(/#.*/, '')) : undefined
    return about === undefined ? {} : { about }
  }
  index.addAll(all.map((one, id) => ({ ...one, ...aboutOf(one), id })))
  return (query) => {
    const words = query.toLowerCase().split(/\s+/)
    const others = words.flatMap((word) => synonyms[word] ?? [])
    const scores = new Map<number, number>()
    const add = (text: string, factor: number): void => {
      const terms = new Set(
        tokenize(text)
          .map(toTerm)
          .filter((term) => term !== null),
      )
      for (const { id, score, queryTerms } of index.search(text)) {
        // What has all the words comes before what has one of them often.
        const share = new Set(queryTerms).size / terms.size
        scores.set(id as number, (scores.get(id as number) ?? 0) + score * factor * (0.2 + share ** 2))
      }
    }
    add(query, 1)
    if (others.length > 0) add(others.join(' '), 0.6)
    const exact = query.trim().toLowerCase()
    for (const [id, { title }] of all.entries()) {
      const name = title.toLowerCase()
      if (name === exact || name.endsWith(`.${exact}`)) scores.set(id, (scores.get(id) ?? 0) + 1000)
    }
    const ranked = [...scores].sort(([, one], [, other]) => other - one).map(([id]) => all[id]!)
    const pages = new Set<string>()
    return ranked.filter(({ url }) => {
      const page = url.replace(/(?:-\d+)?\.html.*/, '')
      const isNew = !pages.has(page)
      pages.add(page)
      return isNew
    })
  }
}
