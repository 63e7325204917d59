#!/usr/bin/env node
// Fetches the libraries of CUDA's runtime, NCCL, NVSHMEM, NVRTC and nvJitLink, and their headers, as wheels with pip, where that works, and
// prints the variables that name them, for `eval`. What it could not fetch it says; the tests that need it are skipped, with
// that reason, and counted. Usage: eval "$(node tooling/setup/realLibraries.mjs)"
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { say } from './install.mjs'
import { cacheFolder, captureBeside, commandEnvironment, readJson, root, SetupError } from './workspace.mjs'

/** No wheel takes longer than this, in seconds; all are fetched at once. */
const limit = 240
const folder = join(cacheFolder, 'real-libraries')
const versionOf = (library) => readJson(join(root, 'tooling/bindgen/spec', `${library}.json`)).headerVersion
const cudaOf = (library) => `${Math.floor(versionOf(library) / 1000)}.${Math.floor(versionOf(library) / 10) % 100}.*`
const cuda = cudaOf('runtime')
const dotted = (value) => [value / 10_000, (value / 100) % 100, value % 100].map(Math.floor).join('.')

/** Wheels, each with the version that the spec is of. */
const wheels = [
  `nvidia-cuda-runtime==${cuda}`,
  `nvidia-cuda-crt==${cuda}`,
  `nvidia-cuda-cccl==${cuda}`,
  `nvidia-cuda-cupti==${cuda}`,
  `nvidia-cuda-profiler-api==${cuda}`,
  `nvidia-nccl-cu13==${dotted(versionOf('nccl'))}`,
  `nvidia-nvshmem-cu13==${dotted(versionOf('nvshmem'))}`,
  `nvidia-cuda-nvrtc==${cudaOf('nvrtc')}`,
  `nvidia-nvjitlink==${cudaOf('nvjitlink')}`,
]

const started = performance.now()
mkdirSync(folder, { recursive: true })
const missing = []
await Promise.all(
  wheels.map(async (wheel) => {
    try {
      await fetchWheel(wheel)
    } catch (error) {
      if (!(error instanceof SetupError)) throw error
      missing.push(wheel)
    }
  }),
)
addStandIns()
const seconds = ((performance.now() - started) / 1000).toFixed(0)
say(`real libraries: ${wheels.length - missing.length} of ${wheels.length} wheels are there, after ${seconds} s`)
if (missing.length > 0) say(`not to be had with pip: ${missing.join(', ')}`)
for (const [name, path] of Object.entries(variables())) {
  if (existsSync(join(folder, path))) process.stdout.write(`export ${name}='${join(folder, path)}'\n`)
}

/** Downloads a wheel and unpacks it, once. */
async function fetchWheel(wheel) {
  const done = join(folder, `${wheel.replace(/[^\w.-]+/g, '-')}.done`)
  if (existsSync(done)) return
  const download = join(folder, `${wheel.split('==')[0]}.download`)
  rmSync(download, { recursive: true, force: true })
  mkdirSync(download)
  const quiet = ['--no-deps', '--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '20']
  const pip = ['-m', 'pip', 'download', ...quiet, '--only-binary', ':all:', '--dest', download, wheel]
  const env = commandEnvironment()
  try {
    await captureBeside('python3', pip, { env, timeout: limit * 1000 })
    const [file] = readdirSync(download)
    await captureBeside('python3', ['-m', 'zipfile', '-e', join(download, file), folder], { env })
    writeFileSync(done, '')
  } finally {
    rmSync(download, { recursive: true, force: true })
  }
}

/** The profiler's two headers come in a wheel of their own, which not every index has: four functions and an enumeration. */
function addStandIns() {
  const include = join(folder, 'nvidia/cu13/include')
  if (!existsSync(include)) return
  const standIns = join(root, 'tooling/bindgen/include/profiler')
  for (const name of readdirSync(standIns)) {
    if (!existsSync(join(include, name))) copyFileSync(join(standIns, name), join(include, name))
  }
}

function variables() {
  return {
    CUDA_HOME: 'nvidia/cu13',
    NCCL_HOME: 'nvidia/nccl',
    NCCL_INCLUDE: 'nvidia/nccl/include',
    NVSHMEM_HOME: 'nvidia/nvshmem',
    SHOAL_CUDART_LIBRARY: `nvidia/cu13/lib/libcudart.so.${Math.floor(versionOf('runtime') / 1000)}`,
    SHOAL_NCCL_LIBRARY: 'nvidia/nccl/lib/libnccl.so.2',
    SHOAL_NVSHMEM_LIBRARY: 'nvidia/nvshmem/lib/libnvshmem_host.so.3',
    SHOAL_NVRTC_LIBRARY: `nvidia/cu13/lib/libnvrtc.so.${Math.floor(versionOf('nvrtc') / 1000)}`,
    SHOAL_NVJITLINK_LIBRARY: `nvidia/cu13/lib/libnvJitLink.so.${Math.floor(versionOf('nvjitlink') / 1000)}`,
  }
}
