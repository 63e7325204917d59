import { parseArgs } from 'node:util'

export interface Options {
  check: boolean
  allowMissingHeaders: boolean
  fromSpec: boolean
  cudaHome?: string
  ncclInclude?: string
  nvshmemInclude?: string
  headerVersion?: string
  /** names of the libraries to look at; all when empty */
  only: string[]
  help: boolean
}

export const usage = `Usage: pnpm bindgen [--check] [options]

Reads the CUDA, NCCL and NVSHMEM headers, writes the spec (tooling/bindgen/spec) and from it the generated sources
and docs/coverage.md.

  --check                  write nothing; compare with what is committed, exit 1 on any difference
  --from-spec              leave the spec as it is and generate the sources from it
  --only LIBRARY           this library alone; may be given several times
  --cuda-home FOLDER       toolkit with include/cuda.h      (else CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/include)
  --nccl-include FOLDER    folder with nccl.h               (else NCCL_INCLUDE, NCCL_HOME/include, PYTHONPATH, the toolkit)
  --nvshmem-include FOLDER folder with nvshmem_host.h       (else NVSHMEM_INCLUDE, NVSHMEM_HOME/include, PYTHONPATH, the toolkit)
  --header-version X       say so when the spec was written from headers of another version; X as in 13.0
  --allow-missing-headers  exit 0 from --check where headers or clang are missing; the sources are still checked
                           against the spec
`

export function readOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      check: { type: 'boolean', default: false },
      'from-spec': { type: 'boolean', default: false },
      'allow-missing-headers': { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      'cuda-home': { type: 'string' },
      'nccl-include': { type: 'string' },
      'nvshmem-include': { type: 'string' },
      'header-version': { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const {
    'cuda-home': cudaHome,
    'nccl-include': ncclInclude,
    'nvshmem-include': nvshmemInclude,
    'header-version': headerVersion,
  } = values
  return {
    check: values.check,
    fromSpec: values['from-spec'],
    allowMissingHeaders: values['allow-missing-headers'],
    only: values.only,
    help: values.help,
    ...(cudaHome === undefined ? {} : { cudaHome }),
    ...(ncclInclude === undefined ? {} : { ncclInclude }),
    ...(nvshmemInclude === undefined ? {} : { nvshmemInclude }),
    ...(headerVersion === undefined ? {} : { headerVersion }),
  }
}
