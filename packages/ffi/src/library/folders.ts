/**
 * The folders in which libraries may lie, in the order in which they are tried. Never a `stubs` folder, never the
 * working directory.
 */
import { readdirSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'

/** Names in a folder; none where it is not there. */
export function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // no such folder, or not ours to read: nothing to find there
  }
}

function unique(folders: readonly string[]): string[] {
  return [...new Set(folders)]
}

/** Toolkits that the environment names. */
export function toolkitsOfEnvironment(environment: NodeJS.ProcessEnv = process.env): string[] {
  const named = [environment['CUDA_HOME'], environment['CUDA_PATH'], environment['CUDA_ROOT']]
  return unique(named.filter((folder): folder is string => folder !== undefined && isAbsolute(folder)))
}

/** Toolkits in their usual places, the newest version first. */
export function installedToolkits(): string[] {
  if (process.platform === 'win32') {
    const root = join(process.env['ProgramFiles'] ?? 'C:\\Program Files', 'NVIDIA GPU Computing Toolkit', 'CUDA')
    return versionsOf(list(root), /^v(\d+)\.(\d+)$/).map((name) => join(root, name))
  }
  const versions = versionsOf(list('/usr/local'), /^cuda-(\d+)(?:\.(\d+))?$/).map((name) => join('/usr/local', name))
  return ['/usr/local/cuda', ...versions, '/opt/cuda']
}

/** Folders of libraries for each processor that a toolkit has, below its root. */
export function targetFolders(toolkit: string): string[] {
  return list(join(toolkit, 'targets'))
    .sort()
    .map((target) => join('targets', target, 'lib'))
}

/** Folders of libraries of the active conda environment. */
export function condaFolders(environment: NodeJS.ProcessEnv = process.env): string[] {
  const prefix = environment['CONDA_PREFIX']
  if (prefix === undefined || !isAbsolute(prefix)) return []
  if (process.platform === 'win32') return [join(prefix, 'Library', 'bin')]
  return ['lib', ...targetFolders(prefix)].map((folder) => join(prefix, folder))
}

function versionsOf(names: readonly string[], pattern: RegExp): string[] {
  const order = (name: string): number => {
    const match = pattern.exec(name)
    return Number(match?.[1] ?? 0) * 1000 + Number(match?.[2] ?? 0)
  }
  return names.filter((name) => pattern.test(name)).sort((a, b) => order(b) - order(a))
}

/**
 * `site-packages` folders of the Python environments in sight: the active one, those on PATH, the system's and the
 * user's.
 */
export function sitePackages(environment: NodeJS.ProcessEnv = process.env): string[] {
  if (process.platform === 'win32') {
    const prefixes = [environment['VIRTUAL_ENV'], environment['CONDA_PREFIX']]
    return prefixes
      .filter((prefix) => prefix !== undefined && isAbsolute(prefix))
      .map((prefix) => join(prefix as string, 'Lib', 'site-packages'))
  }
  const onPath = (environment['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && folder.endsWith('bin'))
    .map(dirname)
  const prefixes = [
    environment['VIRTUAL_ENV'],
    environment['CONDA_PREFIX'],
    ...onPath,
    '/usr',
    '/usr/local',
    join(process.getBuiltinModule('node:os').homedir(), '.local'),
  ]
  const found: string[] = []
  for (const prefix of unique(
    prefixes.filter((folder): folder is string => folder !== undefined && isAbsolute(folder)),
  )) {
    for (const name of versionsOf(list(join(prefix, 'lib')), /^python(\d+)\.(\d+)$/)) {
      for (const kind of ['site-packages', 'dist-packages']) found.push(join(prefix, 'lib', name, kind))
    }
    found.push(join(prefix, 'lib', 'python3', 'dist-packages'))
  }
  return found
}
