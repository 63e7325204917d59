// Describes the host. Every run records this, because figures mean nothing without it.
import { spawnSync } from 'node:child_process'
import { cpus, release } from 'node:os'

const pythonPackages = [
  ['torch', 'cupy-cuda13x', 'cuda-bindings', 'cuda-core', 'numba-cuda', 'triton', 'mpi4py', 'numpy'],
  ['nvidia-cuda-runtime', 'nvidia-nccl-cu13', 'nvidia-nvshmem-cu13'],
].flat()

const pythonScript = `
import json, platform, sys
from importlib.metadata import PackageNotFoundError, version
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
`

/** Returns GPUs, driver, toolkit, Python packages and machine. A fact that cannot be read is null. */
export function hostFacts() {
  return {
    gpus: gpus(),
    topology: output('nvidia-smi', ['topo', '-m']),
    toolkit: /release ([\d.]+)/.exec(output('nvcc', ['--version']) ?? '')?.[1] ?? null,
    pythonPackages: JSON.parse(output('python3', ['-c', pythonScript, ...pythonPackages]) ?? 'null'),
    kernel: release(),
    processor: cpus()[0]?.model ?? null,
    cores: cpus().length,
    node: process.versions.node,
  }
}

function gpus() {
  const columns = ['name', 'driver_version', 'memory.total', 'compute_cap']
  // nvidia-smi shows all GPUs of the machine, but jobs see only those that this variable names.
  const visible = process.env.CUDA_VISIBLE_DEVICES
  const which = visible ? ['-i', visible] : []
  const text = output('nvidia-smi', [...which, `--query-gpu=${columns.join(',')}`, '--format=csv,noheader'])
  if (text === null) return []
  return text.split('\n').map((line) => {
    const [name, driver, memory, computeCapability] = line.split(', ')
    return { name, driver, memory, computeCapability }
  })
}

function output(command, commandArguments) {
  const result = spawnSync(command, commandArguments, { encoding: 'utf8', timeout: 60_000 })
  return result.error || result.status !== 0 ? null : result.stdout.trim()
}
