import { parseArgs } from 'node:util'
import { libraries, type Product } from '../../libraries/index.mjs'

export interface Options {
  check: boolean
  allowMissingHeaders: boolean
  fromSpec: boolean
  cudaHome?: string
  /** header folders, by product */
  includes: Partial<Record<Product, string>>
  headerVersion?: string
  /** the libraries to process; all if empty */
  only: string[]
  /** a version to add to a spec, such as `cuda=13.1` */
  add?: string
  headers?: string
  /** library files of the added version */
  libraries: string[]
  root?: string
  help: boolean
}

/** Products with a header option of their own. Other headers are part of the CUDA toolkit. */
const products = libraries.filter(
  ({ headers }, index) =>
    headers.product !== 'cuda' && libraries.findIndex((other) => other.headers.product === headers.product) === index,
)

const includeOptions = products.map(({ headers: { product, main, variables }, places }) => {
  const option = `  --${product}-include FOLDER`.padEnd(28)
  const variable = variables.include ?? places.environment
  return `${option} folder with ${main} (else ${variable}, PYTHONPATH, the toolkit)`
})

export const usage = `Usage: pnpm bindgen [--check] [options]
       pnpm bindgen --add LIBRARY=VERSION --headers FOLDER [--library FILE]

Reads the headers of the libraries in tooling/libraries, writes the spec (tooling/bindgen/spec) and from it the generated
sources and docs/coverage.md.

  --check                  write nothing; compare with what is committed, exit 1 on any difference
  --from-spec              leave the spec as it is and generate the sources from it
  --add LIBRARY=VERSION    add a version (cuda=13.1, nccl=2.31.0): what the spec does not have is new in it;
                           prints what is new, and what could not be known
  --headers FOLDER         with --add: the headers of that version
  --library FILE           with --add: a library of that version, for what it exports (else those in ../lib and ../lib64)
  --root FOLDER            read and write spec, lists, sources and page in a copy of the repository
  --only LIBRARY           this library alone; may be given several times
  --cuda-home FOLDER       toolkit with include/cuda.h (else CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/include)
${includeOptions.join('\n')}
  --header-version X       say so when the spec was written from headers of another version; X as in 13.0
  --allow-missing-headers  exit 0 from --check where headers or clang are missing; the sources are still checked
                           against the spec
`

export function readOptions(argv: readonly string[]): Options {
  const includes = products.map(({ headers }) => `${headers.product}-include`)
  const { values } = parseArgs({
    args: [...argv],
    options: {
      check: { type: 'boolean', default: false },
      'from-spec': { type: 'boolean', default: false },
      'allow-missing-headers': { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      'cuda-home': { type: 'string' },
      ...Object.fromEntries(includes.map((name) => [name, { type: 'string' } as const])),
      'header-version': { type: 'string' },
      add: { type: 'string' },
      headers: { type: 'string' },
      library: { type: 'string', multiple: true, default: [] },
      root: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const given = {
    cudaHome: values['cuda-home'],
    headerVersion: values['header-version'],
    add: values.add,
    headers: values.headers,
    root: values.root,
  }
  return {
    check: values.check,
    fromSpec: values['from-spec'],
    allowMissingHeaders: values['allow-missing-headers'],
    only: values.only,
    libraries: values.library,
    includes: Object.fromEntries(
      Object.entries(values as Record<string, unknown>)
        .filter(([name, value]) => includes.includes(name) && value !== undefined)
        .map(([name, value]) => [name.replace('-include', ''), value]),
    ),
    help: values.help,
    ...(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<Options>),
  }
}
